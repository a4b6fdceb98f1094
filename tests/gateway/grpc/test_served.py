"""Our own connections: quotas, sessions, and the end of the node."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ropeway.acl.api import Channel
from ropeway.gateway.config import QuotaConfig
from ropeway.gateway.grpc import calls, served
from ropeway.gateway.grpc.protocol import Code, QueryRouteRequest, Resource
from ropeway.gateway.grpc.served import Client, Clients
from tests.gateway.grpc.test_exchanges import REQUEST, calling, prefixed
from tests.gateway.grpc.thin import create, serving
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
        assert one.holds_back()
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
        loop, route = asyncio.get_running_loop(), calls.METHODS["QueryRoute"]
        tick, begun = 0, []

        def count():
            nonlocal tick
            tick += 1
            loop.call_soon(count)

        async def counted(request: Any, call: Any) -> Any:
            begun.append(tick)
            return await route(request, call)

        count()
        monkeypatch.setitem(calls.METHODS, "QueryRoute", counted)
        for number in range(1, 16, 2):
            caller.call(number, prefixed(REQUEST))
        await until(lambda: len(begun) == 8)
        assert len(set(begun)) == 8
