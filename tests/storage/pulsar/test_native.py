"""Entries of native clients become packs, and records become entries of theirs."""

from __future__ import annotations

import pytest

from ropeway.storage.native import NativeMessage
from ropeway.storage.pulsar.commands import KeyValue
from ropeway.storage.pulsar.entry import (
    BatchedMetadata,
    BrokerMetadata,
    Metadata,
    properties_of,
)
from ropeway.storage.pulsar.errors import EntryError
from ropeway.storage.pulsar.native import (
    MOST_UNREADABLE,
    UNREADABLE,
    base_offset,
    outgoing,
    to_pack,
)
from ropeway.storage.pulsar.pack import peel
from tests.storage.pulsar.sharing import Noting
from tests.storage.pulsar.test_entry import captured, made


def test_a_message_alone_is_one_record_at_its_index():
    noting = Noting()
    pack = peel(to_pack(noting, "orders", 3, captured("Delivery 2")))
    assert (pack.base_offset, pack.count) == (1, 1)
    [(message, place)] = noting.seen
    assert (bytes(message.body), message.key) == (b"with all", "k")
    assert message.properties == {"a": "1", "b": "two"}
    assert message.event_ms == 1234567890123
    assert (place.topic, place.number, place.offset) == ("orders", 3, 1)
    assert place.stored_ms == 1795283382682, "the broker's time"
    assert place.unique == "00000000000900000000000100000000"
    assert list(pack.times) == [1795283382682]
    assert bytes(pack.record(0)) == b"1 with all"


def test_a_batch_is_as_many_records_that_end_with_its_index():
    noting = Noting()
    pack = peel(to_pack(noting, "orders", 0, captured("Delivery 7")))
    assert (pack.base_offset, pack.end) == (6, 9)
    assert [place.offset for _, place in noting.seen] == [6, 7, 8]
    assert [message.key for message, _ in noting.seen] == ["k0", "k1", "k2"]
    assert len({place.unique for _, place in noting.seen}) == 3
    assert [bytes(pack.record(n)) for n in range(3)] == [b"6 b0", b"7 b1", b"8 b2"]


def test_without_an_event_time_a_message_is_as_old_as_its_publishing():
    noting = Noting()
    entry = captured("Delivery 1")
    to_pack(noting, "orders", 0, entry)
    assert entry.event_ms == 0
    assert noting.seen[0][0].event_ms == entry.publish_ms


def test_an_entry_without_an_index_is_refused_with_the_settings():
    entry = made(Metadata("p", 1, 1), b"")
    with pytest.raises(EntryError, match=r"4:2 without an index; .*AppendIndex"):
        base_offset(entry)


@pytest.mark.parametrize(
    ("metadata", "said", "count"),
    [
        (Metadata("p", 1, 5, encryption_keys=(b"k",)), "is encrypted", 1),
        (Metadata("p", 1, 5, chunks=3), "chunks", 1),
        (Metadata("p", 1, 5, num_messages=4, transaction=1), "transaction", 4),
        (Metadata("p", 1, 5, num_messages=2), "the batch at 4:2", 2),
        (Metadata("p", 1, 5, compression=99), "4:2", 1),
        (Metadata("p", 1, 5, properties=(b"\xff",)), "", 1),
    ],
)
def test_what_cannot_be_read_takes_up_its_offsets_and_says_why(metadata, said, count):
    entry = made(metadata, b"body")
    entry.__dict__["_broker_metadata"] = BrokerMetadata(index=9)
    noting = Noting()
    pack = peel(to_pack(noting, "orders", 0, entry))
    assert (pack.count, pack.end) == (count, 10)
    for message, _ in noting.seen:
        assert message.body == b""
        assert said in message.properties[UNREADABLE]
        assert message.event_ms == 5


@pytest.mark.parametrize("said", [MOST_UNREADABLE + 1, (1 << 31) - 1])
def test_an_entry_that_says_very_many_messages_is_one_behind_a_gap(said: int):
    entry = made(Metadata("p", 1, 5, num_messages=said), b"body")
    entry.__dict__["_broker_metadata"] = BrokerMetadata(index=said + 9)
    assert base_offset(entry) == 10
    pack = peel(to_pack(Noting(), "orders", 0, entry))
    assert (pack.base_offset, pack.count, pack.end) == (said + 9, 1, said + 10)


def test_a_message_alone_goes_out_with_all_that_it_has():
    one = NativeMessage(b"body", {"a": "1"}, "k", 7)
    assert outgoing([one]) == ([b"body"], [("a", "1")], "k", 7, None)


def test_several_go_out_as_a_batch_that_any_client_reads():
    sent = [
        NativeMessage(b"first", {"a": "1", "b": "2"}, "k", 7),
        NativeMessage(b"", {}),
        NativeMessage(b"x" * 300, {"c": "3" * 200}, None, 8),
    ]
    batch = outgoing(sent)
    assert (batch.properties, batch.key, batch.event_ms, batch.batch) == ((), "k", 7, 3)
    entry = made(Metadata("p", 1, 1, num_messages=3), b"".join(batch.payload))
    read = [
        NativeMessage(bytes(body), properties_of(one), one.partition_key, one.event_ms)
        for one, body in entry.messages()
    ]
    assert read == sent


def test_a_batch_says_the_size_of_an_empty_body_too():
    batch = outgoing([NativeMessage(b"", {}), NativeMessage(b"", {})])
    assert batch.payload[1] == b"\x18\x00"
    assert BatchedMetadata.decode(b"\x18\x00", 0, 2).payload_bytes == 0
    assert KeyValue("a", "1").encode() == b"\x0a\x01a\x12\x011"
