"""Floors of trimmed partitions, as the routes keep them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ropeway.gateway.node.deletions import renewed, without
from ropeway.gateway.node.floors import raised
from ropeway.routing.api import RouteError, Topic

ORDERS = Topic(
    name="orders",
    read_queue_nums=2,
    write_queue_nums=2,
    route={"a": [0, 1], "b": [2, 3]},
)
TRIMMED = replace(ORDERS, floors={0: 5, 2: 7})


def test_a_floor_only_rises() -> None:
    assert raised(ORDERS, ORDERS, "a", {0: 5, 1: 0}).floors == {0: 5}
    assert raised(TRIMMED, ORDERS, "a", {0: 4, 1: 2}).floors == {0: 5, 1: 2, 2: 7}
    assert raised(TRIMMED, ORDERS, "a", {0: 6}).floors == {0: 6, 2: 7}


@pytest.mark.parametrize(
    "now",
    [
        None,
        without(ORDERS, ["a"]),
        replace(ORDERS, generation=1, generations={"a": 1}),
        replace(ORDERS, route={"a": [1], "b": [2, 3, 0]}),
    ],
    ids=["gone", "deleted", "made again", "moved"],
)
def test_queues_that_are_not_what_they_were_are_not_trimmed(now: Topic | None) -> None:
    with pytest.raises(RouteError, match="nothing was trimmed"):
        raised(now, ORDERS, "a", {0: 5})


def test_a_floor_goes_with_its_partition_and_stays_while_that_is_there() -> None:
    changed = renewed(ORDERS, TRIMMED, {"a": [0, 1, 4]}, 0)
    assert changed.floors == {0: 5, 2: 7}
    gone = without(TRIMMED, ["a"])
    assert gone is not None
    # The next generation may have the same numbers.
    assert gone.floors == {2: 7}
