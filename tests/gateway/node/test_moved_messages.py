"""Messages that waited at a broker which has no queue of their topic any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.moved_messages import Elsewhere
from ropeway.gateway.wire.commands.moves import DueMessages
from ropeway.storage.api import LogUnavailableError
from tests.gateway.processors.test_moves import two
from tests.remoting import connect, looped, sending, until

if TYPE_CHECKING:
    from pathlib import Path


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
        elsewhere = Elsewhere("broker-0", one.node.routes, one.node.forwarder)
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
