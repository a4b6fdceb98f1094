"""What stays of a group's looks at queues in which there is nothing for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.commands.pop import (
    FROM_LATEST,
    Notification,
    PeekMessage,
    PopMessage,
)
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_looks_at_queues_without_messages_leave_nothing_in_memory(
    tmp_path: Path,
):
    """Before, each look of another group at another topic stayed, for ever."""
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders", queue_id=0), b"x")
        in_flight = app.node.pop.in_flight
        place = {"topic": "orders", "queue_id": -1}
        for number in range(3):
            group = f"g{number}"
            peek = PeekMessage(consumer_group=group, max_msg_nums=1, **place)
            look = Notification(consumer_group=group, poll_time=0, born_time=0, **place)
            for asked in (peek, look):
                await client.ask(asked)
            assert not list(in_flight)
            pop = PopMessage(
                consumer_group=group,
                max_msg_nums=32,
                invisible_time=60_000,
                poll_time=0,
                born_time=0,
                init_mode=FROM_LATEST,
                **place,
            )
            assert (await client.ask(pop)).code == 0
            (queue,) = [one for one in in_flight if one.group == group]
            assert queue.place == (group, "orders", 0)
            in_flight.forget(group=group)
