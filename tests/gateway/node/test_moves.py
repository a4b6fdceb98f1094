"""Which queues may move, and what a topic is after that."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ropeway.gateway.node.deletions import without
from ropeway.gateway.node.moves import MoveError, moved, plan
from ropeway.gateway.node.placement import with_counts_of
from ropeway.routing.api import Topic

ORDERS = Topic(
    name="orders",
    read_queue_nums=3,
    write_queue_nums=3,
    route={"a": [0, 1, 2], "b": [3]},
)


def test_the_last_queue_goes_behind_those_of_the_other_broker() -> None:
    after = moved(ORDERS, plan(ORDERS, "orders", "a", "b"))
    assert after.route == {"a": [0, 1], "b": [3, 2]}
    assert (after.read_queue_nums, after.moved) == (3, [2])
    back = moved(after, plan(after, "orders", "b", "a"))
    assert back.route == {"a": [0, 1, 2], "b": [3]}
    more = moved(ORDERS, plan(ORDERS, "orders", "a", "c"))
    assert more.route == {"a": [0, 1], "b": [3], "c": [2]}
    # Nobody loses a queue from sight because another has more of them.
    full = replace(ORDERS, route={"a": [0, 1, 2], "b": [3, 4, 5]})
    grown = moved(full, plan(full, "orders", "a", "b"))
    assert (grown.read_queue_nums, grown.write_queue_nums) == (4, 4)


def test_a_queue_that_was_planned_to_move_and_has_changed_stays() -> None:
    wanted = plan(ORDERS, "orders", "a", "b")
    # Another one that came to the taker meanwhile is no hindrance.
    other = replace(ORDERS, route={"a": [0, 1, 2], "b": [3, 9]})
    assert moved(other, wanted).route["b"] == [3, 9, 2]
    grown = replace(ORDERS, route={"a": [0, 1, 2, 5], "b": [3]}, read_queue_nums=4)
    grown = replace(grown, write_queue_nums=4)
    with pytest.raises(MoveError, match="has changed meanwhile"):
        moved(grown, wanted)
    with pytest.raises(MoveError, match="no queues on broker a"):
        moved(None, wanted)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": "%RETRY%readers"}, "each broker's own"),
        ({"name": "SCHEDULE_TOPIC_XXXX"}, "each broker's own"),
        ({"route": {"a": [0], "b": [3]}}, "1 queues on broker a; allowed: 2 or more"),
        ({"write_queue_nums": 2}, "3 queues for reading and 2 for sending"),
        ({"route": {"a": [0, 1, 2, 4]}}, "up to 4 on a broker"),
        ({"mirrored": True}, "allowed: topics whose migration is finished"),
        ({"cut_offsets": [5, 5, 5]}, "orders is mirrored or cut over"),
        ({"attributes": {"message.type": "LITE"}}, "has lite topics"),
        ({"attributes": {"entry.format": "PULSAR"}}, "shared with native clients"),
        ({"generations": {"b": 1}, "generation": 1}, "were not made together"),
    ],
)
def test_what_cannot_move_is_refused_with_what_can(changes: dict, why: str) -> None:
    topic = replace(ORDERS, **changes)
    with pytest.raises(MoveError, match=why):
        plan(topic, topic.name, "a", "b")


def test_a_deletion_that_is_not_applied_comes_first() -> None:
    deleted = without(ORDERS, ["b"])
    with pytest.raises(MoveError, match="just deleted"):
        plan(deleted, "orders", "a", "b")
    with pytest.raises(MoveError, match="allowed: another broker"):
        plan(ORDERS, "orders", "a", "a")


def test_who_names_a_brokers_own_number_of_queues_changes_nobodys() -> None:
    after = moved(ORDERS, plan(ORDERS, "orders", "a", "b"))
    wanted = replace(after, read_queue_nums=2, write_queue_nums=2, perm=4)
    kept = with_counts_of(wanted, after, "a")
    assert (kept.read_queue_nums, kept.perm) == (3, 4)
    fewer = replace(after, read_queue_nums=1, write_queue_nums=1)
    assert with_counts_of(fewer, after, "a") is fewer
    another = with_counts_of(wanted, after, "c")
    assert (another.read_queue_nums, another.write_queue_nums) == (3, 3)
    assert with_counts_of(wanted, None, "a") is wanted
