"""Columns become entries of a batch, as `encode_batch` makes them one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ropeway.gateway.wire.batch import BatchEntry, decode_batch, encode_batch
from ropeway.spark.wire_entries import Columns, as_one

PREFIX = "A" * 24


def made(columns: dict[str, pa.Array], before: int = 0) -> list[BatchEntry]:
    rows = Columns(pa.RecordBatch.from_pydict(columns), before)
    found = as_one(rows.entries(rows.bodies(100), PREFIX))
    entries = decode_batch(bytes(found.data))
    assert encode_batch(entries) == bytes(found.data)
    sizes = [len(encode_batch([one])) for one in entries]
    assert (found.ends[1:] - found.ends[:-1]).tolist() == sizes
    return entries


def test_keys_go_on_where_the_rows_before_have_ended() -> None:
    first, second = made({"value": pa.array([b"a", b"\xff"])}, before=254)
    assert first.properties == f"WAIT\x01true\x02UNIQ_KEY\x01{PREFIX}000000FE\x02"
    assert second.properties.endswith(f"{PREFIX}000000FF\x02")
    assert (first.body, second.body) == (b"a", b"\xff")


def test_a_null_deletes_its_key_and_no_other_row_is_empty() -> None:
    values, keys = pa.array([None, b"a"], pa.binary()), pa.array(["k", None])
    first, second = made({"value": values, "key": keys})
    assert first.body == b""
    assert "KEYS\x01k\x02" in first.properties
    assert "KEYS" not in second.properties
    with pytest.raises(ValueError, match="'value' of row 0 of this task is None"):
        made({"value": values, "key": pa.array(["", "k"])})


def test_columns_come_before_properties_of_the_same_name() -> None:
    own = [("TAGS", "own"), ("a", None), ("UNIQ_KEY", "u")]
    columns = {
        "value": pa.array(["é", "b"]),
        "tag": pa.array(["t", None]),
        "properties": pa.array([own, None], pa.map_(pa.string(), pa.string())),
    }
    first, second = made(columns)
    assert first.properties == "WAIT\x01true\x02TAGS\x01t\x02UNIQ_KEY\x01u\x02"
    assert second.properties == f"WAIT\x01true\x02UNIQ_KEY\x01{PREFIX}00000001\x02"
