"""Messages as Arrow batches: the columns that are asked for, and no others."""

from __future__ import annotations

import datetime as dt
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from ropeway.client import MessageQueue
from ropeway.spark.frames import Frames
from ropeway.spark.rows import (
    TYPES,
    check_schema,
    default_schema,
    to_batch,
)

QUEUE = MessageQueue("orders", "broker-0", 3)
PROPERTIES = b"UNIQ_KEY\x01AB\x02TAGS\x01paid\x02KEYS\x01k1 k2\x02x\x01\xc3\xa4\x02"


def frames(properties: list[bytes]) -> Frames:
    """Messages from offset 7 on; their bodies are "a", "b" and so on."""
    numbers = np.arange(len(properties), dtype=np.int64)
    bodies = [bytes([ord("a") + one]) for one in range(len(properties))]
    return Frames(
        offsets=7 + numbers,
        store_ms=2000 + numbers,
        born_ms=1000 + numbers,
        bodies=pa.array(bodies, pa.binary()),
        properties=pa.array(properties, pa.binary()),
    )


@cache
def found() -> Frames:
    return frames([PROPERTIES, b""])


def test_every_column_is_made() -> None:
    (first, second) = to_batch(found(), QUEUE, list(TYPES)).to_pylist()
    stored = dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)
    assert first == {
        "value": b"a",
        "key": "k1 k2",
        "tag": "paid",
        "sharding_key": None,
        "topic": "orders",
        "broker": "broker-0",
        "queue": 3,
        "offset": 7,
        "timestamp": stored,
        "born_timestamp": stored - dt.timedelta(seconds=1),
        "msg_id": "AB",
        "properties": [
            ("UNIQ_KEY", "AB"),
            ("TAGS", "paid"),
            ("KEYS", "k1 k2"),
            ("x", "ä"),
        ],
        "headers": [
            {"key": "UNIQ_KEY", "value": b"AB"},
            {"key": "TAGS", "value": b"paid"},
            {"key": "KEYS", "value": b"k1 k2"},
            {"key": "x", "value": "ä".encode()},
        ],
    }
    assert (second["value"], second["tag"]) == (b"b", None)
    assert (second["properties"], second["headers"]) == ([], [])


def test_only_what_is_asked_for_is_made() -> None:
    assert to_batch(found(), QUEUE, ["offset"]).to_pylist() == [
        {"offset": 7},
        {"offset": 8},
    ]


def test_a_property_is_found_by_its_whole_name() -> None:
    properties = [
        PROPERTIES,
        b"MYTAGS\x01no\x02TAGS\x01yes",
        b"a\x01TAGS\x02",
        b"TAGS\x01\x02",
        b"TAGS\x01no\xfftext\nat all\x02",
        b"",
    ]
    batch = to_batch(frames(properties), QUEUE, ["tag"])
    assert batch.column("tag").to_pylist() == [
        "paid",
        "yes",
        None,
        None,
        "no\ufffdtext\nat all",
        None,
    ]


def test_conditions_choose_messages() -> None:
    def offsets(**conditions: set[str] | None) -> list[int]:
        batch = to_batch(found(), QUEUE, ["offset"], conditions)
        return batch.column("offset").to_pylist()

    assert offsets(tag=None, key=None) == [7, 8]
    assert offsets(tag={"paid", "sent"}, key=None) == [7]
    assert offsets(tag={"paid"}, key={"k1 k2"}) == [7]
    assert offsets(tag={"paid"}, key={"k1"}) == []
    assert offsets(tag=set()) == []


def test_a_schema_has_columns_that_topics_have() -> None:
    check_schema(default_schema("properties", "headers"))
    with pytest.raises(ValueError, match="column 'body' is asked for; allowed: value"):
        check_schema(StructType().add("body", LongType()))
    with pytest.raises(ValueError, match="'value' is asked for as bigint; allowed: b"):
        check_schema(StructType().add("value", LongType()))
