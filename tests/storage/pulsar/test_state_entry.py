"""Entries of a state: golden bytes, any text, any cut, and what compaction leaves."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.pulsar.commands import KeyValue
from ropeway.storage.pulsar.entry import BatchedMetadata, Entry, Position
from ropeway.storage.pulsar.errors import EntryError
from ropeway.storage.pulsar.frames import payload_frame
from ropeway.storage.pulsar.protobuf import LENGTH, key, varint
from ropeway.storage.pulsar.send_entry import (
    EntryMetadata,
    encode_metadata,
    metadata_head,
)
from ropeway.storage.pulsar.state_entry import (
    ENTRY_BYTES,
    Change,
    Leader,
    decode,
    decode_leader,
    encode,
    encode_leader,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
changes = st.dictionaries(
    texts.filter(bool),
    st.one_of(st.none(), st.integers(0, 1 << 62), texts),
    min_size=1,
)
OURS = [("ropeway-state", "1")]


def stored(
    payload: bytes,
    messages: int,
    properties: list[tuple[str, str]] = OURS,
    more: bytes = b"",
) -> Entry:
    """An entry as a reader gets it."""
    said = EntryMetadata(1, properties, batch=messages)
    metadata = encode_metadata(metadata_head("p"), 0, said)
    head, *rest = payload_frame(b"", metadata + more, [payload])
    return Entry(Position(1, 2), b"".join((head, *rest)), 8)


def test_the_bytes_are_those_of_the_format() -> None:
    [(part, payload)] = encode({"k": "v", "gone": 77, "old": None})
    assert part == {"k": "v", "gone": 77, "old": None}
    assert payload == (
        b"\0\0\0\x05" + b"\x12\x01k" + b"\x18\x02" + b"=v"
        b"\0\0\0\x08" + b"\x12\x04gone" + b"\x18\x03" + b"-77"
        b"\0\0\0\x07" + b"\x12\x03old" + b"\x18\x00"
    )
    assert decode(stored(payload, 3)) == part


@given(changes)
def test_any_text_comes_back(changes: dict[str, Change]) -> None:
    found: dict[str, Change] = {}
    for part, payload in encode(changes):
        assert decode(stored(payload, len(part))) == part
        found |= part
    assert found == changes


def test_an_entry_is_not_much_longer_than_it_may_be() -> None:
    facts = {f"k{number}": "v" * 30_000 for number in range(40)}
    parts = list(encode(facts))
    assert len(parts) == 5
    assert all(len(payload) < ENTRY_BYTES + 64 * 1024 for _, payload in parts)
    assert {key: value for part, _ in parts for key, value in part.items()} == facts


def test_what_compaction_took_out_is_not_there() -> None:
    out = BatchedMetadata(compacted_out=True).encode()
    hole = struct.pack(">I", len(out)) + out
    [(_, payload)] = encode({"k": "v"})
    assert decode(stored(hole + payload + hole, 3)) == {"k": "v"}


def test_a_cut_anywhere_is_an_error_of_that_entry() -> None:
    [(_, payload)] = encode({"k": "v", "gone": 77})
    for end in range(len(payload)):
        with pytest.raises(EntryError):
            decode(stored(payload[:end], 2))


@given(st.binary(max_size=64), st.integers(1, 3))
def test_garbage_is_an_error_of_that_entry(garbage: bytes, messages: int) -> None:
    try:
        found = decode(stored(garbage, messages))
    except EntryError:
        return
    assert all(type(key) is str for key in found)


def message(payload: bytes, **metadata: object) -> bytes:
    """One message of a batch."""
    head = BatchedMetadata(payload_bytes=len(payload), **metadata).encode()  # type: ignore[arg-type]
    return struct.pack(">I", len(head)) + head + payload


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (message(b"=v"), "a message without a key"),
        (
            message(b"?", partition_key="k"),
            r"a value of kind b'\?'; allowed: b'=', b'-'",
        ),
        (message(b"-one", partition_key="k"), "the value of key 'k': invalid literal"),
        (message(b"=\xff", partition_key="k"), "the value of key 'k': .*utf-8"),
    ],
)
def test_values_that_cannot_be_are_named(payload: bytes, reason: str) -> None:
    with pytest.raises(EntryError, match=reason):
        decode(stored(payload, 1))


@pytest.mark.parametrize(
    ("properties", "came"),
    [([], "none"), ([("ropeway-state", "2")], "'2'"), ([("other", "1")], "none")],
)
def test_foreign_entries_and_other_versions_are_named(
    properties: list[tuple[str, str]], came: str
) -> None:
    with pytest.raises(EntryError, match=f"ropeway-state is {came}; allowed: '1'"):
        decode(stored(b"", 1, properties))


def test_properties_may_be_damaged() -> None:
    damaged = KeyValue("k", "v").encode()[:2]
    field = key(4, LENGTH) + varint(len(damaged)) + damaged
    with pytest.raises(EntryError, match="properties that are damaged"):
        decode(stored(b"", 1, [], field))


def test_the_leader_is_told_and_what_is_none_is_refused() -> None:
    leader = Leader("node-1", "0a", 1.5, ended=True)
    assert decode_leader(encode_leader(leader)) == leader
    with pytest.raises(EntryError, match="the record of the leader"):
        decode_leader('{"node": 5}')
