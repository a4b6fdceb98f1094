"""Rows become messages: each in its queue, with a key that another try gives too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ropeway.client import MessageQueue
from ropeway.client.message import Message
from ropeway.client.queue_selector import select_by_sharding_key
from ropeway.gateway.wire import properties
from ropeway.spark.message_encoder import Packer, Parcel

QUEUES = tuple(MessageQueue("orders", "broker-0", at) for at in range(3))


LONGEST_BYTES = 4 << 20


def packed(rows: list[dict], identity: str = "query/1/0") -> list[Parcel]:
    packer = Packer(lambda _: QUEUES, "orders", identity, LONGEST_BYTES)
    return [*packer.pack(pa.RecordBatch.from_pylist(rows)), *packer.rest()]


def pairs(parcel: Parcel) -> list[dict[str, str]]:
    return [properties.parse(entry.properties) for entry in parcel.entries]


def test_a_row_goes_where_its_columns_say() -> None:
    rows = [
        {"value": b"a", "queue": 2, "sharding_key": "x"},
        {"value": b"b", "queue": None, "sharding_key": "order-7"},
    ]
    by_body = {entry.body: one.queue for one in packed(rows) for entry in one.entries}
    message = Message("orders", b"b", sharding_key="order-7")
    assert by_body == {b"a": QUEUES[2], b"b": select_by_sharding_key(QUEUES, message)}


def test_another_try_gives_the_same_keys_and_another_batch_does_not() -> None:
    rows = [{"value": "a", "tag": "t", "key": "k1 k2"}, {"value": "b", "tag": None}]
    (first,) = packed(rows)
    assert first == packed(rows)[0]
    keys = [one["UNIQ_KEY"] for one in pairs(first)]
    (other,) = packed(rows, "query/2/0")
    assert len({*keys, *(one["UNIQ_KEY"] for one in pairs(other))}) == 4
    assert pairs(first)[0]["TAGS"] == "t"
    assert pairs(first)[0]["KEYS"] == "k1 k2"
    assert [one.body for one in first.entries] == [b"a", b"b"]


def test_parcels_are_bounded_and_take_queues_in_turn() -> None:
    parcels = packed([{"value": b"x" * 1000}] * 1200)
    assert sum(len(one.entries) for one in parcels) == 1200
    assert len({one.queue for one in parcels}) == len(parcels) == 3


def test_a_delayed_row_goes_alone() -> None:
    first, second = packed([{"value": b"a", "delay_ms": 5}, {"value": b"b"}])
    assert first.is_alone
    assert pairs(first)[0]["TIMER_DELAY_MS"] == "5"
    assert not second.is_alone


def test_a_large_row_goes_alone_and_in_its_place() -> None:
    large = b"x" * LONGEST_BYTES
    rows = [{"value": value, "queue": 1} for value in (b"a", large, b"b")]
    found = [([one.body for one in at.entries], at.is_alone) for at in packed(rows)]
    assert found == [([b"a"], False), ([large], True), ([b"b"], False)]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"value": b""}, "column 'value' of row 0 of this task is b''; allowed: 1 b"),
        ({"value": None}, "column 'value' of row 0 of this task is None"),
        (
            {"value": b"x" * (LONGEST_BYTES + 1)},
            "'value' of row 0 of this task is 4194305 bytes; allowed: up to 4194304 by",
        ),
        ({"value": b"a", "queue": 3}, "'queue' of row 0 of this task is 3; allowed: 0"),
        ({"value": b"a", "delay_ms": -1}, "'delay_ms' .* is -1; allowed: from 0"),
        ({"value": b"a", "tag": "\x01"}, "'properties' .* allowed: text without 0x01"),
    ],
)
def test_a_row_that_cannot_be_sent_is_named(row: dict, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        packed([row])
