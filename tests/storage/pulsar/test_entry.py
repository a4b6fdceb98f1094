"""Entries as a real broker sent them: what is in them, and what cannot be read."""

import pytest

from ropeway.storage.pulsar.commands import Delivery, MessageId, encode_command
from ropeway.storage.pulsar.entry import Entry, Metadata, Position, properties_of
from ropeway.storage.pulsar.errors import EntryError, WireError
from ropeway.storage.pulsar.frames import decode_frame, payload_frame
from tests.storage.pulsar.golden import COMPRESSED, FRAMES


def captured(name: str, change: bytes = b"") -> Entry:
    frame = FRAMES[name]
    delivery, at = decode_frame(frame)
    assert isinstance(delivery, Delivery)
    where = delivery.message_id
    return Entry(Position(where.ledger, where.entry), frame, at)


def made(metadata: Metadata, payload: bytes) -> Entry:
    delivery = encode_command(Delivery(0, MessageId(4, 2)))
    frame = b"".join(payload_frame(delivery, metadata.encode(), [payload]))
    return Entry(Position(4, 2), frame, decode_frame(frame)[1])


def test_an_entry_shows_what_its_producer_and_the_broker_said():
    entry = captured("Delivery 2")
    assert entry.position == Position(9, 1)
    assert str(entry.position) == "9:1"
    assert bytes(entry.payload) == b"with all"
    assert entry.properties == {"a": "1", "b": "two"}
    assert entry.partition_key == "k"
    assert (entry.event_ms, entry.publish_ms) == (1234567890123, 1795283382681)
    assert (entry.producer_name, entry.sequence_id) == ("writer", 1)
    assert (entry.highest_sequence_id, entry.num_messages) == (1, 1)
    assert (entry.index, entry.broker_ms) == (1, 1795283382682)


def test_an_entry_that_is_no_batch_is_one_message():
    entry = captured("Delivery 1")
    assert list(entry.messages()) == [(entry.metadata, b"plain")]


@pytest.mark.parametrize("number", [3, 4, 5, 6])
def test_a_compressed_payload_is_given_as_it_was_before(number):
    entry = captured(f"Delivery {number}")
    assert entry.metadata.compression == number - 2
    assert entry.payload == COMPRESSED


def test_a_batch_gives_its_messages_each_with_its_own_metadata():
    entry = captured("Delivery 7")
    assert (entry.num_messages, entry.index) == (3, 8)
    messages = list(entry.messages())
    assert [bytes(payload) for _, payload in messages] == [b"b0", b"b1", b"b2"]
    assert [one.partition_key for one, _ in messages] == ["k0", "k1", "k2"]
    assert [properties_of(one) for one, _ in messages] == [
        {"n": "0"},
        {"n": "1"},
        {"n": "2"},
    ]


def test_what_compaction_left_of_a_batch_is_given_alone():
    gone, kept = b"\x18\x02\x20\x01", b"\x18\x02"
    payload = b"".join(
        len(one).to_bytes(4, "big") + one + text
        for one, text in ((gone, b"aa"), (kept, b"bb"))
    )
    entry = made(Metadata("p", 1, 1, num_messages=2), payload)
    assert [bytes(payload) for _, payload in entry.messages()] == [b"bb"]


def test_a_broker_that_adds_nothing_leaves_index_and_time_unknown():
    entry = made(Metadata("p", 1, 1), b"")
    assert (entry.index, entry.broker_ms) == (None, None)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (Metadata("p", 1, 1, encryption_keys=(b"",)), "is encrypted"),
        (Metadata("p", 1, 1, chunks=3), "is one of 3 chunks"),
        (Metadata("p", 1, 1, transaction=0), "is part of a transaction"),
        (Metadata("p", 1, 1, compression=9), "compression 9; allowed"),
        (Metadata("p", 1, 1, compression=2, uncompressed_bytes=5), "cannot be undone"),
    ],
)
def test_an_entry_that_cannot_be_read_says_why_and_where(metadata, said):
    entry = made(metadata, b"payload")
    with pytest.raises(EntryError, match=rf"^the entry at 4:2.*{said}"):
        _ = entry.payload


def test_a_damaged_payload_is_never_given():
    frame = bytearray(FRAMES["Delivery 1"])
    frame[-1] ^= 1
    entry = Entry(Position(9, 0), bytes(frame), decode_frame(bytes(frame))[1])
    with pytest.raises(EntryError, match="at 9:0 does not have its checksum"):
        list(entry.messages())


@pytest.mark.parametrize(
    "payload", [b"", b"\x00\x00\x00\x09\x18\x02", b"\x00\x00\x00\x02\x18\x09aa"]
)
def test_a_damaged_batch_says_where(payload):
    entry = made(Metadata("p", 1, 1, num_messages=1), payload)
    with pytest.raises(EntryError, match=r"^the batch at 4:2: a .* allowed: 0 to \d"):
        list(entry.messages())


def test_a_frame_without_metadata_is_no_entry():
    with pytest.raises(WireError):
        Entry(Position(1, 1), FRAMES["Success 1"], len(FRAMES["Success 1"]))


def test_a_message_that_is_its_only_chunk_is_whole():
    assert bytes(made(Metadata("p", 1, 1, chunks=1), b"whole").payload) == b"whole"
