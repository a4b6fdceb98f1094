"""Indexes: what is added is found, in memory and in the file alike."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.file.block import ENTRY, KEY_BYTES
from ropeway.storage.file.index import (
    HEADER,
    KEYS_A_RUN,
    Span,
    directory_bytes,
    load,
    places_in,
)
from ropeway.storage.file.segment import ActiveIndex


def entries(*places: int) -> bytes:
    return b"".join(ENTRY.pack(place, 10, -3, 1000 + place) for place in places)


def dumped(index: ActiveIndex) -> bytes:
    return b"".join(index.dump(base=4096, log_id=9, segment_bytes=500, newest_ms=7))


def test_a_dump_has_no_copy_of_the_keys() -> None:
    index = ActiveIndex()
    keys = bytes(range(256)) * (10 * KEYS_A_RUN * KEY_BYTES // 256)
    index.add_keys(keys)
    tracemalloc.start()
    try:
        pieces = index.dump(base=4096, log_id=9, segment_bytes=500, newest_ms=7)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(piece) for piece in pieces) == len(keys) + HEADER.size
    assert most < len(keys) // 8


def test_a_dumped_index_loads_to_the_same_spans() -> None:
    index = ActiveIndex()
    assert index.add(5, 100, entries(64, 74))
    assert index.add(2, 0, entries(84))
    assert not index.add(5, 102, entries(94))
    data = dumped(index)
    length = directory_bytes(data[: HEADER.size], 4096, 9)
    assert length is not None
    sealed = load(data[: HEADER.size], data[HEADER.size : HEADER.size + length])
    assert sealed is not None
    assert sealed.span(2) == index.span(2) == Span(0, 1, 0)
    assert sealed.span(5) == Span(100, 3, 1)
    assert sealed.span(3) is None
    assert list(sealed.ordinals()) == [2, 5]
    assert (sealed.segment_bytes, sealed.newest_ms) == (500, 7)
    assert data[sealed.body_at : sealed.keys_at] == entries(84, 64, 74, 94)
    assert sealed.file_bytes == len(data)


def test_any_flipped_byte_of_header_or_directory_is_noticed() -> None:
    index = ActiveIndex()
    index.add(1, 0, entries(64))
    index.add(7, 3, entries(74))
    data = dumped(index)
    for at in range(HEADER.size + 32):
        bad = bytearray(data)
        bad[at] ^= 0x40
        head = bytes(bad[: HEADER.size])
        length = directory_bytes(head, 4096, 9)
        assert (
            length is None or load(head, bytes(bad[HEADER.size :][:length])) is None
        ), at


def test_lost_offsets_are_stood_in_for() -> None:
    index = ActiveIndex()
    index.add(1, 10, entries(64))
    index.add(1, 13, entries(94))
    assert index.span(1) == Span(10, 4, 0)
    found = list(ENTRY.iter_unpack(index.parts[1].data))
    assert [size for _, size, _, _ in found] == [10, 0, 0, 10]
    assert [place for place, _, _, _ in found] == [64, 64, 64, 94]


@given(st.lists(st.integers(0, 7), max_size=40), st.integers(1, 400))
def test_keys_are_found_in_full_runs_and_in_the_tail(
    hashes: list[int], repeat: int
) -> None:
    index = ActiveIndex()
    values = [key_hash << 32 | place for place, key_hash in enumerate(hashes * repeat)]
    for at in range(0, len(values), 1000):
        block = values[at : at + 1000]
        index.add_keys(b"".join(value.to_bytes(8, "little") for value in block))
    for key_hash in range(9):
        expected = [v & 0xFFFFFFFF for v in values if v >> 32 == key_hash]
        found = [
            place
            for run in reversed(range(index.runs))
            for place in index.places(run, key_hash)
        ]
        assert found == expected[::-1]
    data = dumped(index)
    sealed = load(data[: HEADER.size], b"")
    assert sealed is not None
    assert (sealed.keys, sealed.file_bytes) == (len(values), len(data))
    assert sealed.runs == -(-len(values) // KEYS_A_RUN)
    with memoryview(data)[HEADER.size :].cast("Q") as keys:
        found = [
            place
            for low in reversed(range(0, len(keys), KEYS_A_RUN))
            for place in places_in(keys, low, min(low + KEYS_A_RUN, len(keys)), 3)
        ]
    assert found == [v & 0xFFFFFFFF for v in values[::-1] if v >> 32 == 3]


def test_what_the_format_calls_zero_is_zero() -> None:
    fields = HEADER.unpack(dumped(ActiveIndex())[: HEADER.size])
    assert (fields[3], fields[12]) == (0, 0)
