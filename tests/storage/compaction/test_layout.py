"""The bytes of an index: golden ones, any cut, any alteration."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.compaction.layout import ENTRY, HEADER, Entry, Index, load

ENTRIES = ENTRY.pack(5, 0, 7, -1, 1000, 0, b"d" * 16)
INDEX = Index(1, 7, 1000, 0, [(5, 0, 0xABCD, crc32(ENTRIES))])
GOLDEN = bytes.fromhex(
    "52575943"  # RWYC
    "b4a2bd41"
    "0100"
    "4000"
    "01000000"
    "0700000000000000"
    "e803000000000000"
    "0000000000000000"
    "0000000000000000"
    "0500000000000000"
    "00000000"
    "cdab0000"
)


def test_the_bytes_are_those_of_the_format() -> None:
    dumped = INDEX.dump()
    assert dumped[:4] + dumped[8:64] == GOLDEN[:4] + GOLDEN[8:]
    assert len(dumped) == HEADER.size + 20


def test_what_was_dumped_is_loaded() -> None:
    index = load(INDEX.dump() + ENTRIES, "name")
    assert (index.records, index.data_bytes, index.newest_ms) == (1, 7, 1000)
    assert list(index.firsts) == [5]
    place, size = index.entries_of(0)
    data = (INDEX.dump() + ENTRIES)[place : place + size]
    assert index.parse(0, data, "name") == [Entry(5, 0, 7, -1, 1000, 0, b"d" * 16)]
    assert index.data_of(0) == (0, 7)


@given(st.integers(0, len(INDEX.dump()) - 1))
def test_no_cut_passes(cut: int) -> None:
    with pytest.raises(LogDamagedError, match="name: "):
        load(INDEX.dump()[:cut], "name")


@given(st.integers(0, len(INDEX.dump()) - 1), st.integers(1, 255))
def test_no_alteration_passes(at: int, bits: int) -> None:
    data = bytearray(INDEX.dump())
    data[at] ^= bits
    with pytest.raises(LogError, match="name"):
        load(bytes(data), "name")


@given(st.integers(0, ENTRY.size - 1), st.integers(1, 255))
def test_altered_entries_are_found(at: int, bits: int) -> None:
    data = bytearray(ENTRIES)
    data[at] ^= bits
    with pytest.raises(LogDamagedError, match="name, entry 0"):
        INDEX.parse(0, bytes(data), "name")


def test_a_newer_format_is_said_to_be_one() -> None:
    data = bytearray(INDEX.dump())
    data[8] = 2
    with pytest.raises(LogError, match="format 2; this program reads up to 1"):
        load(bytes(data), "name")
