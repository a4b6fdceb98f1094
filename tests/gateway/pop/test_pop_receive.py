"""What a pop takes, as data: offsets, and retried messages as if they were new."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ropeway.gateway.pop.pop_receive import (
    Taken,
    Wanted,
    as_asked_for,
    offsets_of,
    places,
)
from ropeway.gateway.wire import message, properties, receipt
from ropeway.gateway.wire.message import Message
from ropeway.storage.api import Chunk


def retried(offset: int, text: str, **changes) -> bytes:
    return message.encode(
        Message(
            topic="%RETRY%readers_orders",
            queue_id=0,
            queue_offset=offset,
            message_id=1 << 62 | offset,
            body=b"body %d" % offset,
            properties=text,
            flag=3,
            born_ms=5,
            store_ms=6,
            reconsume_times=2,
            **changes,
        )
    )


class Topic:
    """As far as a chunk needs it."""

    magic, name_field = message.topic_field("orders")


STUB = receipt.Receipt(4, 1000, 60_000, 0, 1, "broker-0", 0)


def test_offsets_are_those_before_the_next_where_nothing_was_left_out():
    chunk = Chunk([b""], 3, 10)
    assert list(offsets_of(chunk, filtered=False)) == [7, 8, 9]


def test_infos_are_as_clients_take_them_apart():
    taken = Taken(Wanted("readers", "orders", 3, 32, 60_000), 5)
    taken.put(0, 3, 0, Chunk([b"abc"], 3, 3), range(3))
    assert (taken.starts, taken.offsets) == (["0 3 0"], ["0 3 0,1,2"])
    assert (taken.count, taken.size_bytes) == (3, 3)


def test_offsets_are_read_where_something_was_left_out():
    data = [retried(3, "") + retried(7, ""), retried(9, "")]
    assert offsets_of(Chunk(data, 3, 12), filtered=True) == (3, 7, 9)


@pytest.mark.parametrize("turn", [0, 1])
def test_retries_are_looked_for_in_all_their_queues(turn):
    """A broker that was drained has given its queue of retries to another."""
    names = {"orders": 2, "%RETRY%readers_orders": 1, "%RETRY%readers+orders": 3}
    topics = {
        name: SimpleNamespace(
            partitions=[None] * count, setup=SimpleNamespace(read_queue_nums=count)
        )
        for name, count in names.items()
    }
    wanted = SimpleNamespace(
        group="readers",
        topic="orders",
        in_order=False,
        own_retries=False,
        priority_percent=0,
        queue_id=-1,
        filter=None,
    )
    found = [
        (one.setup.read_queue_nums, queue_id, kind)
        for one, queue_id, kind, _ in places(topics, wanted, turn)
    ]
    retries = [
        (1, 0, receipt.RETRY_V1),
        *((3, at, receipt.RETRY_V2) for at in range(3)),
    ]
    assert sorted(found) == sorted([*retries, *((2, at, 0) for at in range(2))])
    assert (found[0] in retries) == (turn == 0)


@pytest.mark.parametrize("text", ["", "a\x01b\x02", "a\x01b", "POP_CK\x01old\x02"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_retried_message_seems_to_be_of_the_topic_and_has_its_receipt(text, host):
    data = retried(7, text, born_host=(host, 9), store_host=(host, 10))
    two = data + retried(8, text)
    found = as_asked_for(Chunk([two], 2, 9), Topic, STUB)
    assert (found.records, found.next_offset, len(found.data)) == (2, 9, 2)
    one = message.decode(found.data[0])
    before = message.decode(data)
    pairs = properties.parse(one.properties)
    assert pairs.pop("POP_CK") == "4 1000 60000 0 1 broker-0 0 7"
    kept = properties.parse(before.properties)
    kept.pop("POP_CK", None)
    assert pairs == kept
    assert one.topic == "orders"
    for name in Message.__struct_fields__:
        if name not in ("topic", "properties"):
            assert getattr(one, name) == getattr(before, name), name
    assert "7" in found.data[0].decode("latin-1")
