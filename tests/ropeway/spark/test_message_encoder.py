"""Rows become messages: each in its queue, with a key that another try gives too."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.client import MessageQueue
from ropeway.client.message import Message
from ropeway.client.queue_selector import select_by_sharding_key
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.batch import BatchEntry, decode_batch
from ropeway.spark.message_encoder import Packer, Parcel

QUEUES = tuple(MessageQueue("orders", "broker-0", at) for at in range(3))


LONGEST_BYTES = 4 << 20
KINDS = {
    **dict.fromkeys(("topic", "tag", "key", "sharding_key"), pa.string()),
    "delay_ms": pa.int64(),
    "queue": pa.int32(),
    "properties": pa.map_(pa.string(), pa.string()),
    "headers": pa.list_(
        pa.struct([("key", pa.string()), ("value", pa.binary())]),
    ),
}


def packed(rows: list[dict], identity: str = "query/1/0") -> list[Parcel]:
    packer = Packer(lambda _: QUEUES, "orders", identity, LONGEST_BYTES)
    is_text = isinstance(rows[0]["value"], str)
    kinds = {**KINDS, "value": pa.string() if is_text else pa.binary()}
    schema = pa.schema({name: kinds[name] for name in rows[0]})
    batch = pa.RecordBatch.from_pylist(rows, schema)
    return [*packer.pack(batch), *packer.rest()]


def entries(parcel: Parcel) -> list[BatchEntry]:
    found = decode_batch(parcel.data)
    assert len(found) == parcel.messages
    return found


def pairs(parcel: Parcel) -> list[dict[str, str]]:
    return [properties.parse(entry.properties) for entry in entries(parcel)]


def test_a_row_goes_where_its_columns_say() -> None:
    rows = [
        {"value": b"a", "queue": 2, "sharding_key": "x"},
        {"value": b"b", "queue": None, "sharding_key": "order-7"},
    ]
    by_body = {entry.body: one.queue for one in packed(rows) for entry in entries(one)}
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
    assert [one.body for one in entries(first)] == [b"a", b"b"]


def test_headers_are_properties_as_those_who_come_from_kafka_write_them() -> None:
    headers = [
        {"key": "a", "value": b"1"},
        {"key": "a", "value": b"2"},
        {"key": "TAGS", "value": b"old"},
        {"key": "none", "value": None},
    ]
    rows = [{"value": "x", "headers": headers, "tag": "new"}, {"value": "y"}]
    first, second = pairs(packed(rows)[0])
    assert (first["a"], first["TAGS"]) == ("2", "new")
    assert "none" not in first
    assert second.keys() == {"WAIT", "UNIQ_KEY"}


def test_parcels_are_bounded_and_take_queues_in_turn() -> None:
    parcels = packed([{"value": b"x" * 1000}] * 1200)
    assert sum(one.messages for one in parcels) == 1200
    assert len({one.queue for one in parcels}) == len(parcels) == 3


def test_a_delayed_row_goes_alone() -> None:
    first, second = packed([{"value": b"a", "delay_ms": 5}, {"value": b"b"}])
    assert first.is_alone
    assert pairs(first)[0]["TIMER_DELAY_MS"] == "5"
    assert not second.is_alone


def test_a_large_row_goes_alone_and_in_its_place() -> None:
    large = b"x" * LONGEST_BYTES
    rows = [{"value": value, "queue": 1} for value in (b"a", large, b"b")]
    found = [([one.body for one in entries(at)], at.is_alone) for at in packed(rows)]
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
        (
            {"value": b"a", "properties": [("a", "\x02")]},
            "'properties' .* allowed: text without 0x01",
        ),
        (
            {"value": b"a", "headers": [{"key": "a", "value": b"\xff"}]},
            "'headers' of row 0 .* allowed: values of UTF-8",
        ),
        (
            {"value": b"a", "headers": [{"key": "a\x01", "value": b"b"}]},
            "'headers' .* allowed: text without 0x01",
        ),
        ({"value": b"a", "tag": "t" * 32767}, "'properties' .* up to 32767 bytes"),
        ({"value": b"a", "tag": "\x01"}, "'tag' .* allowed: text without 0x01"),
    ],
)
def test_a_row_that_cannot_be_sent_is_named(row: dict, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        packed([row])


TEXT = st.none() | st.text(
    st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=4
)
COLUMNS = {
    **dict.fromkeys(("tag", "key", "sharding_key"), TEXT),
    "delay_ms": st.none() | st.integers(0, 2),
    "queue": st.none() | st.integers(0, 2),
    "topic": st.none() | st.sampled_from(["", "orders", "bills"]),
    "properties": st.none()
    | st.dictionaries(st.sampled_from(["a", "b", "TAGS", "WAIT"]), TEXT).map(
        lambda found: list(found.items())
    ),
}
TABLES = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(one, min_size=6, max_size=6) for name, one in COLUMNS.items()
    },
)


@pytest.mark.slow
@given(st.lists(TABLES, max_size=3))
def test_messages_are_what_the_columns_of_their_rows_say(tables: list[dict]) -> None:
    packer = Packer(
        lambda topic: [MessageQueue(topic, "broker-0", at) for at in range(3)],
        "orders",
        "query/1/0",
        LONGEST_BYTES,
    )
    rows: list[dict] = []
    parcels: list[Parcel] = []
    for table in tables:
        values = [f"é{at}" for at in range(len(rows), len(rows) + 6)]
        kinds = {name: KINDS[name] for name in table} | {"value": pa.string()}
        batch = pa.RecordBatch.from_pydict(table | {"value": values}, pa.schema(kinds))
        rows += batch.to_pylist()
        parcels += packer.pack(batch)
    parcels += packer.rest()
    found = {
        int(entry.body.decode()[1:]): (parcel, properties.parse(entry.properties))
        for parcel in parcels
        for entry in entries(parcel)
    }
    assert sorted(found) == list(range(len(rows)))
    assert len({pairs["UNIQ_KEY"] for _, pairs in found.values()}) == len(rows)
    for at, row in enumerate(rows):
        parcel, pairs = found[at]
        assert parcel.queue.topic == (row.get("topic") or "orders")
        sharded = row.get("sharding_key")
        if row.get("queue") is not None:
            assert parcel.queue.queue_id == row["queue"]
        elif sharded is not None:
            assert parcel.queue.queue_id == abs(properties.tag_hash(sharded)) % 3
        assert parcel.is_alone is bool(row.get("delay_ms"))
        wanted = {"WAIT": "true", **dict(row.get("properties") or ())}
        wanted |= {"TAGS": row.get("tag") or wanted.get("TAGS")}
        wanted |= {"KEYS": row.get("key"), "__SHARDINGKEY": sharded}
        wanted |= {"TIMER_DELAY_MS": str(row.get("delay_ms") or "")}
        wanted |= {"UNIQ_KEY": pairs["UNIQ_KEY"]}
        if row.get("tag") == "" or wanted["WAIT"] is None:
            continue
        assert pairs == {name: value for name, value in wanted.items() if value}


def test_rows_of_one_queue_stay_in_their_order() -> None:
    rows = [{"value": f"{at}", "sharding_key": f"{at % 7}"} for at in range(5000)]
    found: dict[MessageQueue, list[int]] = {}
    for parcel in packed(rows):
        bodies = [int(entry.body) for entry in entries(parcel)]
        found.setdefault(parcel.queue, []).extend(bodies)
    assert sorted(at for one in found.values() for at in one) == list(range(5000))
    assert all(one == sorted(one) for one in found.values())
