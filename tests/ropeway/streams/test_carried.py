"""What travels with records is told from them, and becomes messages of its own."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ropeway.streams import carried, records
from ropeway.streams.carried import Tracking


def test_messages_and_records_are_told_apart() -> None:
    batch = records.to_records([("k", 1, 5), (None, 2, 6)])
    state = carried.row_key("states", '["k"]')
    aside = pa.RecordBatch.from_arrays(
        [pa.array([state]), pa.array([b"7"]), pa.array([0], records.TIME)],
        names=batch.schema.names,
    )
    together = pa.Table.from_batches([batch, aside]).combine_chunks().to_batches()[0]
    found, others = carried.split(together)
    assert list(records.from_records(found)) == [("k", 1, 5), (None, 2, 6)]
    assert others == aside
    assert carried.is_carried(state)
    assert not carried.is_carried(records.dump_key("k"))


def test_they_become_messages_to_their_topics() -> None:
    rows = pa.RecordBatch.from_pylist(
        [
            {"key": carried.row_key("states", '"k"'), "value": b"7"},
            {"key": carried.row_key("states", '"gone"'), "value": b""},
        ]
    )
    assert carried.to_messages(rows).to_pylist() == [
        {"value": b"7", "sharding_key": '"k"', "topic": "states", "key": '"k"'},
        # Without a value: a tombstone.
        {"value": None, "sharding_key": '"gone"', "topic": "states", "key": '"gone"'},
    ]


def test_a_source_tells_where_its_queues_go_on() -> None:
    tracking = Tracking("offsets", "sink", "source", "orders")
    rows = [
        {"value": b"a", "broker": "broker-0", "queue": queue, "offset": offset}
        for queue, offset in ((3, 11), (3, 12), (4, 7))
    ]
    batch = pa.RecordBatch.from_pylist(rows)
    same, told = tracking(batch)
    assert same is batch
    messages = carried.to_messages(told).to_pylist()
    assert {one["topic"] for one in messages} == {"offsets"}
    assert [(one["key"], one["value"]) for one in messages] == [
        ('["sink", "source", "orders", "broker-0:3"]', b"13"),
        ('["sink", "source", "orders", "broker-0:4"]', b"8"),
    ]
    assert tracking(batch.slice(0, 0))[1].num_rows == 0


@pytest.mark.parametrize("bodies", [[b"9", b"12", b"10"], [b"12"]])
def test_of_several_offsets_the_highest_counts(bodies: list[bytes]) -> None:
    assert carried.newest(bodies) == b"12"


def test_a_state_is_passed_on_as_it_is() -> None:
    assert carried.newest([b'{"state": 1}']) == b'{"state": 1}'
