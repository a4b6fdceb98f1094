"""A topic as it is served: what may be done with it, and what its ids begin with."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ropeway.gateway.node.served_topic import ServedTopic
from ropeway.routing.api import PERM_READ, PERM_WRITE, Topic

BOTH = PERM_READ | PERM_WRITE


@dataclass
class Numbered:
    number: int


def served(name: str = "orders", *, typed: bool = False, **changes) -> ServedTopic:
    setup = Topic(
        name=name,
        **{"read_queue_nums": 4, "write_queue_nums": 8, "perm": BOTH, **changes},
    )
    return ServedTopic(setup, [Numbered(5), Numbered(9)], typed=typed)


def test_no_more_queues_are_served_than_there_are_partitions() -> None:
    setup = served().setup
    assert (setup.read_queue_nums, setup.write_queue_nums) == (2, 2)


def test_ids_begin_with_the_partition_and_say_whether_it_is_of_a_retry_topic() -> None:
    assert served().id_bases == [5 << 52, 9 << 52]
    assert served("%RETRY%group").id_bases == [(1 << 62) | 5 << 52, (1 << 62) | 9 << 52]


@pytest.mark.parametrize(
    ("name", "perm", "readable", "writable", "plain"),
    [
        ("orders", BOTH, True, True, True),
        ("orders", PERM_READ, True, False, False),
        ("orders", PERM_WRITE, False, True, True),
        ("%RETRY%group", BOTH, True, True, False),
        ("RMQ_SYS_TRANS_HALF_TOPIC", BOTH, False, True, False),
    ],
)
def test_who_may_do_what(name, perm, readable, writable, plain) -> None:
    topic = served(name, perm=perm)
    assert (topic.readable, topic.writable) == (readable, writable)
    assert topic.plain == plain


def test_a_type_of_messages_counts_only_where_it_is_checked() -> None:
    attributes = {"message.type": "FIFO"}
    assert served(attributes=attributes).plain
    typed = served(typed=True, attributes=attributes)
    assert (typed.message_type, typed.plain) == ("FIFO", False)
