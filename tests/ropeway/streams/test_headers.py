"""Headers go with bodies to deserializers, and leave as columns of messages."""

from __future__ import annotations

import pickle

import pyarrow as pa

from ropeway.streams import headers, sinks
from ropeway.streams.carried import row_key
from ropeway.streams.headers import Header
from ropeway.streams.records import TIME

PROPERTIES = [("KEYS", "k1"), ("TAGS", "paid"), ("amount", "5")]


def test_a_message_has_its_header_beside_its_body() -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([b"a", b"b"]),
            pa.array([7000, 8000], TIME),
            pa.array([5000, 6000], TIME),
            pa.array([PROPERTIES, []], pa.map_(pa.string(), pa.string())),
        ],
        names=["value", "timestamp", "born_timestamp", "properties"],
    )
    found = [*headers.from_messages_with_headers(batch)]
    assert found == [(None, b"a", 7), (None, b"b", 8)]
    assert [body.header for _, body, _ in found] == [
        Header("k1", "paid", dict(PROPERTIES), store_ms=7, born_ms=5),
        Header(store_ms=8, born_ms=6),
    ]


def test_a_header_becomes_columns_alone_and_beside_others() -> None:
    header = Header("k1", "paid", {"amount": "5"})
    found = [("k", (b"a", header), 1), (None, (None, Header("k2")), 1)]
    first = {
        "value": b"a",
        "sharding_key": "k",
        "key": "k1",
        "tag": "paid",
        "properties": [("amount", "5")],
    }
    second = {**dict.fromkeys(first), "key": "k2", "properties": []}
    form = sinks._HEADED
    assert form.messages(found).to_pylist() == [first, second]
    beside = form.beside_others(found)
    assert beside.to_pylist() == [one | {"topic": None} for one in (first, second)]
    rows = pa.RecordBatch.from_pylist([{"key": row_key("states", "k"), "value": b"7"}])
    others = form.carried(rows)
    assert others.schema == beside.schema
    assert others.to_pylist() == [
        {
            **second,
            "value": b"7",
            "sharding_key": "k",
            "key": "k",
            "topic": "states",
        }
    ]


def test_a_header_can_be_pickled() -> None:
    header = Header("k1", properties={"amount": "5"})
    assert pickle.loads(pickle.dumps(header)) == header
