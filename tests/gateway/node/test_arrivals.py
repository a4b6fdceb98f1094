"""Where groups are in queues of other brokers, before and after those come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.gateway.node.arrivals import Arrivals
from ropeway.storage.file import open_offsets
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_what_was_handed_over_counts_when_the_queue_comes(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    arrivals = Arrivals(offsets)
    await arrivals.put("orders", 2, 7, {"readers": 5, "others": 9})
    await arrivals.put("orders", 2, 7, {"readers": 6})
    assert all(map(names.is_inner, offsets.groups()))
    assert offsets.furthest("orders", 7) is None
    await offsets.close()

    offsets = open_offsets(tmp_path)
    arrivals = Arrivals(offsets)
    arrivals.load()
    cleared: list[tuple[str, int]] = []

    def clear(topic: str, queue_id: int) -> None:
        cleared.append((topic, queue_id))
        offsets.forget(topic=topic, queue_id=queue_id)

    # Somebody read another queue of that id, which has moved away since.
    offsets.commit("stale", "orders", 1, 100)
    assert arrivals.settle("orders", 2, [3], clear) == []
    assert arrivals.settle("orders", 0, [3, 7], clear) == []
    assert not cleared
    assert arrivals.settle("orders", 2, [3, 7], clear) == [7]
    assert cleared == [("orders", 1)]
    assert offsets.queues("readers", "orders") == {1: 6}
    assert offsets.queues("stale", "orders") == {}
    assert offsets.queues("others", "orders") == {}
    assert arrivals.settle("orders", 2, [3, 7], clear) == []
    await arrivals.forget("orders", 2, [7])
    assert list(offsets.groups()) == ["readers"]
    await offsets.close()


@looped
async def test_a_crash_before_it_is_kept_lets_the_queue_come_again(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    arrivals = Arrivals(offsets)
    await arrivals.put("orders", 0, 7, {"readers": 6})
    assert arrivals.settle("orders", 0, [7], lambda *_: None) == [7]
    again = Arrivals(offsets)
    again.load()
    offsets.forget(group="readers")
    assert again.settle("orders", 0, [7], lambda *_: None) == [7]
    assert offsets.get("readers", "orders", 0) == 6
    await offsets.close()


@looped
async def test_a_queue_comes_that_nobody_has_read(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    arrivals = Arrivals(offsets)
    await arrivals.put("orders", 0, 7, {})
    offsets.commit("stale", "orders", 0, 100)

    def clear(topic: str, queue_id: int) -> None:
        offsets.forget(topic=topic, queue_id=queue_id)

    assert arrivals.settle("orders", 0, [7], clear) == [7]
    assert offsets.queues("stale", "orders") == {}
    await offsets.close()
