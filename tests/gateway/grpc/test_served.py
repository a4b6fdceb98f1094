"""Our own connections: quotas, sessions, and the end of the node."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ropeway.acl.api import Channel
from ropeway.gateway.config import QuotaConfig
from ropeway.gateway.grpc import methods, served
from ropeway.gateway.grpc.protocol import (
    Code,
    QueryRouteRequest,
    Resource,
    TelemetryCommand,
)
from ropeway.gateway.grpc.served import Client, Clients
from ropeway.gateway.node.fair_queueing import TURN_REQUESTS
from tests.gateway.grpc.test_exchanges import REQUEST, calling, prefixed
from tests.gateway.grpc.thin import create, producer, serving
from tests.guarded import acl_of
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROUTE = QueryRouteRequest(topic=Resource(name="orders"))


@looped
async def test_it_is_what_takes_calls_unless_something_else_is_wanted(tmp_path: Path):
    async with serving(tmp_path) as (app, client):
        assert (await client.call("QueryRoute", ROUTE)).status.code
        assert isinstance(app.server.http2, Clients)
        (one,) = app.server.http2.open.values()
        assert isinstance(one, Client)
        assert one.source.channel is Channel.GRPC
        assert one.address.startswith("127.0.0.1:")
        one.close()
        await until(lambda: not app.server.http2.open)
        # The client comes again.
        assert (await client.call("QueryRoute", ROUTE)).status.code


@looped
async def test_bytes_both_ways_count_for_a_quota(tmp_path: Path):
    quotas = (QuotaConfig(of="127.0.0.1", bytes_per_s=100_000),)
    async with serving(tmp_path, quotas=quotas) as (app, client):
        await create(app, "orders")
        answers = await asyncio.gather(
            *(client.send("orders", bytes(50_000)) for _ in range(4))
        )
        assert {one.status.code for one in answers} == {Code.OK}
        (one,) = app.server.http2.open.values()
        # It is over by now where the machine stood still meanwhile.
        assert one.share._account.throttled
        assert one.holds_back() or not one.share.held_back
        assert (await client.send("orders")).status.code == Code.OK


@looped
async def test_calls_that_have_begun_are_answered_at_the_end(tmp_path: Path):
    async with calling(tmp_path) as (app, caller):
        (client,) = app.server.http2.open.values()
        caller.call(1, prefixed(REQUEST))
        client.drain()
        assert await caller.status() == "0"
        app.server.http2.close()
        assert await caller.goaway_code() == 0


@looped
async def test_what_calls_will_take_counts_in_the_tick_in_which_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As many were begun in a tick as could be read in it, and took far longer."""
    monkeypatch.setattr(served, "_CALL_S", 3600.0)
    async with calling(tmp_path) as (_, caller):
        loop, route = asyncio.get_running_loop(), methods.METHODS["QueryRoute"]
        tick, begun = 0, []

        def count():
            nonlocal tick
            tick += 1
            loop.call_soon(count)

        async def counted(request: Any, call: Any) -> Any:
            begun.append(tick)
            return await route(request, call)

        count()
        monkeypatch.setitem(methods.METHODS, "QueryRoute", counted)
        for number in range(1, 16, 2):
            caller.call(number, prefixed(REQUEST))
        await until(lambda: len(begun) == 8)
        assert len(set(begun)) == 8


@looped
async def test_who_is_not_known_yet_begins_one_call_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A newcomer at that address waited for 20 calls of each other."""
    async with calling(tmp_path, acl=acl_of(tmp_path)) as (app, caller):
        (client,) = app.server.http2.open.values()
        start, take_turn, turn, begun = client.start, client.take_turn, 0, []

        def counted(*about: Any) -> int:
            nonlocal turn
            turn += 1
            return take_turn(*about)

        def noted(work: Any) -> Any:
            begun.append(turn)
            return start(work)

        monkeypatch.setattr(client, "take_turn", counted)
        monkeypatch.setattr(client, "start", noted)
        for number in range(1, 16, 2):
            caller.call(number, prefixed(REQUEST))
        await until(lambda: len(begun) == 8)
        assert len(set(begun)) == 8


@looped
async def test_calls_of_clients_that_have_gone_end_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Those of 90 connections that left together took 0.8 s, and nobody was heard."""
    monkeypatch.setattr(served, "_CALL_S", 3600.0)
    command = TelemetryCommand(settings=producer("orders"))
    async with calling(tmp_path) as (app, caller):
        await create(app, "orders")
        sessions = app.server.http2.service.sessions
        numbers = range(1, 160, 2)
        for one in numbers:
            caller.call(
                one,
                prefixed(command.SerializeToString()),
                ends=False,
                method="Telemetry",
                x_mq_client_id=f"client-{one}",
            )
        await until(lambda: len([*sessions]) == len(numbers))
        (client,) = app.server.http2.open.values()
        take_turn, told = client.take_turn, []

        def counted(now: float, until: float) -> int:
            before = len(client._ending)
            taken = take_turn(now, until)
            told.append(before - len(client._ending))
            return taken

        monkeypatch.setattr(client, "take_turn", counted)
        client.abort()
        left = [len(numbers)]
        while left[-1]:
            await asyncio.sleep(0)
            left.append(len([*sessions]))
        ended = [before - after for before, after in pairwise(left)]
        assert max(told) == TURN_REQUESTS
        # What was told to end may take an iteration more, and be seen with the next.
        assert max(ended) <= 2 * TURN_REQUESTS < len(numbers)
