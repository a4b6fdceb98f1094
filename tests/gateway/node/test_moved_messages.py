"""Messages that waited at a broker which has no queue of their topic any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway.node import names
from ropeway.gateway.node.drains import DRAINING
from ropeway.gateway.node.moved_messages import MovedMessages
from ropeway.gateway.wire.commands.moves import DueMessages
from ropeway.storage.api import LogUnavailableError
from tests.gateway.processors.test_moves import two
from tests.remoting import TIMEOUT_S, connect, looped, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App


@looped
async def test_messages_are_stored_by_the_broker_that_has_their_topic(tmp_path: Path):
    async with (
        two(tmp_path) as (one, other, _, _log),
        connect(other.server.listeners[0]) as second,
    ):
        assert (await second.ask(sending("theirs"), b"first")).code == 0
        there = other.node.topics.get("theirs").partitions
        await until(lambda: "theirs" in one.node.routes.topics)
        (record,) = (await there[0].read(0, 1, 1)).data
        elsewhere = MovedMessages("broker-0", one.node.routes, one.node.forwarder)
        due = DueMessages(
            topic="theirs",
            queue_id=len(there) + 1,
            messages=[(bytes(record), None), (bytes(record), b"KEYS\x01again\x02")],
            from_timer=False,
        )
        assert elsewhere.has("theirs")
        assert await elsewhere.store(due) is None
        assert there[1].end == 2
        (stored,) = (await there[1].read(1, 1, 1)).data
        assert b"again" in bytes(stored)

        # The topic is here alone; or nowhere; or the other broker does not take it.
        for topic, why in (("orders", "no broker that runs"), ("no", "no broker")):
            lost = await elsewhere.store(
                DueMessages(topic=topic, queue_id=0, messages=[], from_timer=False)
            )
            assert isinstance(lost, LogUnavailableError)
            assert why in str(lost)
        other.node.topics._served.pop("theirs")
        lost = await elsewhere.store(due)
        assert "topic theirs is not on broker broker-1" in str(lost)
        assert not elsewhere.has("no")


async def until_waiting(app: App, count: int) -> None:
    """Return when so many messages wait at a broker."""
    node = app.node
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            levels = await node.schedule.count_waiting()
            if levels + await node.timer.count_waiting() == count:
                return
            await asyncio.sleep(0.01)


@looped
async def test_what_waits_at_a_drained_broker_waits_on_at_another(tmp_path: Path):
    async with two(tmp_path, delay_levels="1s 1h") as (one, other, client, _log):
        hour_ms = 3_600_000
        for body, pairs in (
            (b"level", {"DELAY": "2"}),
            (b"timed", {"TIMER_DELAY_MS": str(hour_ms)}),
        ):
            asked = sending("orders", pairs=pairs)
            assert (await client.ask(asked, body)).code == 0
        routes = one.node.routes
        elsewhere = MovedMessages("broker-0", routes, one.node.forwarder)
        assert not elsewhere.keeps_what_waits
        assert await one.node.schedule.count_waiting() == 1
        assert await one.node.timer.count_waiting() == 1

        await routes.put_setting(names.DRAINS, "broker-0", DRAINING)
        assert elsewhere.keeps_what_waits
        asked = sending("orders", pairs={"DELAY": "2", "UNIQ_KEY": "1" * 32})
        assert (await client.ask(asked, b"late")).code == 0
        await until_waiting(one, 0)
        await until_waiting(other, 3)
        entries, _ = await other.node.timer.page(b"", None, 9, 9)
        assert [one.topic for one in entries] == ["orders"] * 3
        left_ms = [one.due_ms - now_ms() for one in entries]
        assert all(hour_ms - 60_000 * 10 < each <= hour_ms for each in left_ms)

        # None is to keep it where all leave.
        await until(lambda: (names.DRAINS, "broker-0") in other.node.routes.settings)
        await routes.put_setting(names.DRAINS, "broker-1", DRAINING)
        assert not elsewhere.keeps_what_waits
