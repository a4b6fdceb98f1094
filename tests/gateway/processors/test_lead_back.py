"""Routes of a topic that goes back, and what is done with messages meanwhile."""

from __future__ import annotations

import msgspec

from ropeway.gateway.node import source_sends
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.admin import HELD
from ropeway.routing.api import PASSED_ON, RETURNED, SENT_BACK, STORED
from tests.gateway.node.test_source_routes import (
    HERE,
    ask,
    create,
    creating,
    following,
    route,
    source_of,
    until_route,
)
from tests.remoting import looped, running
from tests.requests import sending


@looped
async def test_clients_are_led_here_until_groups_have_read_and_then_to_the_source(
    tmp_path, monkeypatch
):
    # On a busy machine, too.
    monkeypatch.setattr(source_sends, "HOLD_S", 60)
    async with (
        source_of(tmp_path) as (source, there),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        await create(there, "orders")
        await create(here, "orders", perm=4, begins="0")
        mirror = creating("orders", perm=4)

        async def lead(writes: str, **more: str) -> str | None:
            wanted = msgspec.structs.replace(mirror, writes=writes, **more)
            return (await here.ask(wanted)).remark

        assert "writes is 'sent_back'; allowed: " in (await lead(SENT_BACK) or "")
        for writes in (PASSED_ON, HELD, STORED):
            assert not await lead(writes, hold="one")
        await create(here, "orders")
        assert await route(here, "orders") == HERE
        assert (await here.ask(sending("orders"), b"x")).code == 0
        assert not await lead(HELD, hold="two")
        assert "lacks messages" in (await lead(SENT_BACK, hold="two", ends="0") or "")
        assert not await lead(SENT_BACK, hold="two", ends="1")
        told = bodies.decode(bodies.TopicRoute, (await ask(here, "orders")).body)
        assert [(one.broker_name, one.perm) for one in told.queue_datas] == [
            ("broker-0", 6)
        ]
        # What is sent here is the source's, whose queue is empty still.
        sent = await here.ask(sending("orders"), b"y")
        assert (sent.code, sent.fields["queueOffset"]) == (0, "0")
        assert not await lead(RETURNED)
        await until_route(here, "orders", {"source-0": 1})
        sent = await here.ask(sending("orders"), b"z")
        assert (sent.code, sent.fields["queueOffset"]) == (0, "1")
