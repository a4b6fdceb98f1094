"""Queues that come and go, as topics are served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.arrivals import Arrivals
from ropeway.gateway.node.queue_transfers import MovingQueues
from ropeway.gateway.node.renumbered import Renumbered
from ropeway.routing.api import Topic
from ropeway.storage.api import LogUnavailableError
from ropeway.storage.file import open_offsets
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = Topic(
    name="orders", read_queue_nums=3, write_queue_nums=3, route={"a": [4, 5, 6]}
)


def test_a_queue_that_is_about_to_go_is_left_out_with_what_is_behind_it() -> None:
    moving = MovingQueues("a", None)
    assert moving.numbers(None) is None
    assert moving.numbers(ORDERS) == [4, 5, 6]
    moving.withdrawn["orders"] = 5
    assert moving.numbers(ORDERS) == [4]
    moving.withdrawn["orders"] = 9
    assert moving.numbers(ORDERS) == [4, 5, 6]


@looped
async def test_queues_that_cannot_be_settled_are_not_served(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    arrivals = Arrivals(offsets)
    await arrivals.put("orders", 0, 6, {"readers": 3})
    moving = MovingQueues("a", arrivals)

    def refuse(*_: object) -> None:
        raise LogUnavailableError("another node leads")

    moving.clear_queue = refuse
    moving.load()
    assert not moving.settle(ORDERS, [4, 5, 6])
    moving.clear_queue = lambda *_: None
    moving.load()
    assert moving.settle(ORDERS, [4, 5, 6])
    assert offsets.get("readers", "orders", 2) == 3
    await moving.cleared("orders", [])
    await offsets.close()


@looped
async def test_only_queues_that_moved_say_another_id_and_always_by_one_object(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
        served = app.node.topics.get("orders")
        numbers = [one.number for one in served.partitions]
        moving, log = MovingQueues("broker-0", None), app.node.log
        assert moving.partitions(served.setup, numbers, log) == served.partitions
        setup = Topic(
            name="orders", read_queue_nums=1, write_queue_nums=1, moved=numbers[:1]
        )
        first, *rest = moving.partitions(setup, numbers, log)
        assert isinstance(first, Renumbered)
        assert rest == served.partitions[1:]
        assert moving.partitions(setup, numbers, log)[0] is first
        left: list[int] = []
        moving.left = lambda _, partition: left.append(partition.number)
        moving.leave(served, numbers[1:])
        moving.leave(None, [])
        assert left == numbers[:1]
