"""Queues that have moved say their own id in each message that is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.renumbered import Renumbered
from ropeway.gateway.wire import message
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_whatever_was_stored_is_read_under_the_new_id(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for body in (b"one", b"two"):
            assert (await client.ask(sending("orders", queue_id=0), body)).code == 0
        inner = app.node.topics.get("orders").partitions[0]
        moved = Renumbered(inner, 5)
        places = ("topic", "number", "first", "end", "last_end", "next_offset")
        assert [getattr(moved, name) for name in places] == [
            getattr(inner, name) for name in places
        ]
        chunks = [await moved.read(0, 2, 1 << 20)]
        chunks += [chunk] if (chunk := moved.read_now(0, 2, 1 << 20)) else []
        for chunk in chunks:
            assert (chunk.records, chunk.next_offset) == (2, 2)
            found = [one for piece in chunk.data for one in message.split(piece)]
            decoded = [message.decode(one) for one in found]
            assert [(one.queue_id, one.body) for one in decoded] == [
                (5, b"one"),
                (5, b"two"),
            ]
        first = await inner.read(0, 1, 1)
        assert message.decode(bytes(first.data[0])).queue_id == 0
