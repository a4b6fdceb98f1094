"""What is stored of batches can be read again, and nothing else passes for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.node.batches import records
from ropeway.gateway.node.batches.records import Decided, Known, Published
from ropeway.gateway.wire import message
from ropeway.gateway.wire.batch import BatchEntry, decode_batch, encode_batch
from ropeway.gateway.wire.errors import MessageError
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path

HOST = message.pack_host("127.0.0.1", 10911)
DECIDED = Decided("sink", 7, 1000, {"broker-0": [1, 2]}, {"orders": {0: 5}})


@looped
async def test_what_is_stored_reads_back(tmp_path: Path) -> None:
    async with running(tmp_path) as (app, _):
        topic = await app.node.topics.ensure_derived(names.BATCHES_TOPIC, 1)
        for entry in (DECIDED, Published(3), Known([DECIDED])):
            record = records.entry_record(topic, 1000, entry, HOST)
            assert records.read_entry(record[0]) == (0, entry)
        entries = [BatchEntry(0, b"a", ""), BatchEntry(0, b"b", "TAGS\x01t\x02")]
        record = records.staged_record(
            topic,
            1000,
            producer_id="sink",
            owner="users:alice",
            for_topic="orders",
            for_queue_id=3,
            body=encode_batch(entries),
            born_host=HOST,
            store_host=HOST,
        )
        staged = records.read_staged(record[0])
        assert staged.owner == "users:alice"
        assert (staged.producer_id, staged.topic, staged.queue_id) == (
            "sink",
            "orders",
            3,
        )
        assert decode_batch(staged.original.body) == entries
        with pytest.raises(MessageError, match="no record of batches"):
            records.read_entry(record[0])


def test_a_mark_tells_the_place_in_its_batch_alone() -> None:
    stored = message.encode(
        message.Message(
            topic="orders",
            queue_id=0,
            queue_offset=0,
            message_id=0,
            body=b"x",
            properties=f"TAGS\x01t\x02{records.mark(12, 345)}",
        )
    )
    assert records.marked_index(stored, 12) == 345
    assert records.marked_index(stored, 1) is None
    longest = records.mark(2**63 - 1, 2**63 - 1)
    assert len(longest) == len("ROPEWAY_BATCH\1:\2") + 2 * 19
