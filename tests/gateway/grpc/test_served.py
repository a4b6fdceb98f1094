"""Our own connections: quotas, sessions, and the end of the node."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from acl.api import Channel
from gateway.config import QuotaConfig
from gateway.grpc.protocol import Code, QueryRouteRequest, Resource
from gateway.grpc.served import Client, Clients
from tests.gateway.grpc.test_exchanges import REQUEST, calling, prefixed
from tests.gateway.grpc.thin import create, serving
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

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
