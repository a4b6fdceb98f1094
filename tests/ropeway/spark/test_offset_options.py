"""Offsets in a checkpoint's words, and where reading begins."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.client import MessageQueue
from ropeway.spark import offset_options

ONE, TWO = MessageQueue("orders", "a:b", 0), MessageQueue("orders", "a:b", 1)


class Reader:
    """Queues from 5 to 50, of which a group has read one up to 20, another up to 2."""

    async def begin_offset(self, _queue: MessageQueue) -> int:
        return 5

    async def end_offset(self, _queue: MessageQueue) -> int:
        return 50

    async def committed(self, queue: MessageQueue) -> int | None:
        return {0: 20, 1: 2}.get(queue.queue_id)

    async def offset_for_timestamp(self, _queue: MessageQueue, time_ms: int) -> int:
        return time_ms // 10


@pytest.mark.parametrize(
    ("where", "time_ms", "found"),
    [
        ("earliest", None, [5, 5]),
        ("latest", None, [50, 50]),
        ("committed", None, [20, 5]),
        ("latest", 70, [7, 7]),
        ("latest", {"orders": {"a:b:0": 70, "a:b:1": 80}}, [7, 8]),
        ({"orders": {"a:b:0": 33}}, None, [33, 5]),
        ({"orders": {"a:b:0": -1, "a:b:1": -2}}, None, [50, 5]),
    ],
)
def test_a_place_is_an_offset_of_each_queue(where, time_ms, found) -> None:
    resolved = offset_options.resolve(Reader(), [ONE, TWO], where, time_ms)
    assert asyncio.run(resolved) == dict(zip((ONE, TWO), found, strict=True))


def test_offsets_survive_a_checkpoint() -> None:
    offsets = {ONE: 3, TWO: 4, MessageQueue("bills", "b", 7): 5}
    kept = offset_options.dump(offsets)
    assert kept == {"orders": {"a:b:0": 3, "a:b:1": 4}, "bills": {"b:7": 5}}
    assert offset_options.load(kept) == offsets


def test_a_queue_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="queue 'broker-0' of topic 'orders'; allowed"):
        offset_options.load({"orders": {"broker-0": 3}})
