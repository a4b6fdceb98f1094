"""What version 1 wrote is read as if today's program had written it."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.checked_header import checked
from ropeway.storage.sealed import layout, version_1
from ropeway.storage.sealed.columns import ROW
from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import (
    SPARSE,
    NewerSegmentError,
    SegmentError,
    Whose,
)
from tests.storage.sealed.segments import (
    EXAMPLE,
    WHOSE,
    BlockLimits,
    Made,
    One,
    made,
    some_records,
)

TIER_INDEX = bytes.fromhex(
    "52575449 bd2c3e54 0100 0000 02000000 0700000000000000 efcdab0000000000 "
    "e803000000000000 e903000000000000 4d00000000000000 3500000000000000 "
    "02000000 01000000 03000000 06000000 6f72646572730000 "
    "02000000 15000000 15000000 19279438 "
    "e803000000000000 e903000000000000 0e000000 07000000 f6ffffff fdffffff "
)
TIER_DATA = bytes.fromhex(
    "52575444 55093291 0100 0000 02000000 0700000000000000 efcdab0000000000 "
    "0000000e 6f6e6520636f66666565 00000007 74776f"
)
"""As a program of that version wrote them."""
COMPACTED = Whose("orders", 3)
GROUP = 64
ENTRY = struct.Struct("<QIIiqq16s")


def tier_index(segment: Made) -> bytes:
    """The index of a dense segment as version 1 had it; its data had a header."""
    index, about = decode_index(segment.index), segment.about
    columns = [index.columns(number) for number in range(index.blocks)]
    blocks = [
        struct.pack("<IIII", records, raw, stored, crc)
        for _, records, raw, stored, crc, _, _ in layout.BLOCK.iter_unpack(
            index.block_rows
        )
    ]
    topic = about.whose.topic.encode()
    header = struct.pack(
        "<4sIHHIQQqqqQIIII",
        *(b"RWTI", 0, 1, about.flags >> 1, about.records, about.base_offset),
        *(about.whose.identity, about.least_ms, about.most_ms, about.written_ms),
        *(32 + about.data_bytes, 0, len(blocks), about.whose.number, len(topic)),
    )
    body = b"".join(
        [
            *(topic, bytes(-len(topic) % 8), *blocks),
            *(bytes(one.times) for one in columns),
            *(bytes(one.sizes) for one in columns),
            *(bytes(one.tags) for one in columns),
        ]
    )
    return checked(header, body) + body


def compacted_index(records: list[One]) -> bytes:
    """The index of compacted records as version 1 had it; the data are today's."""
    entries, place = [], 0
    for one in records:
        size = len(one.data)
        fields = (one.offset, place, size, one.tag, one.store_ms, one.due_ms)
        entries.append(ENTRY.pack(*fields, one.digest))
        place += size
    crcs = [
        crc32(b"".join(one.data for one in records[at : at + GROUP]))
        for at in range(0, len(records), GROUP)
    ]
    newest_ms = max(one.store_ms for one in records)
    due_ms = min((one.due_ms for one in records if one.due_ms), default=0)
    return assembled(entries, crcs, place, newest_ms, due_ms)


def assembled(
    entries: list[bytes], crcs: list[int], data_bytes: int, newest_ms: int, due_ms: int
) -> bytes:
    """Such an index: header, directory, entries."""
    directory = b""
    for at, crc in zip(range(0, len(entries), GROUP), crcs, strict=True):
        first, place = struct.unpack_from("<QI", entries[at])
        its_entries = b"".join(entries[at : at + GROUP])
        directory += struct.pack("<QIII", first, place, crc, crc32(its_entries))
    header = struct.pack(
        "<4sIHHIQqqQ",
        *(b"RWYC", 0, 1, GROUP, len(entries), data_bytes, newest_ms, due_ms, 0),
    )
    return checked(header, directory) + directory + b"".join(entries)


def as_it_was(index: bytes) -> bytes:
    """The index of compacted records that today's program wrote, as version 1 had it.

    It had groups of 64 records, so that is what blocks have to have.
    """
    found = decode_index(index)
    entries, at = [], 0
    for number in range(found.blocks):
        for fields in ROW.iter_unpack(found.columns(number).rows()):
            offset, size, *rest = fields
            entries.append(ENTRY.pack(offset, at, size, *rest))
            at += size
    crcs = [block[4] for block in layout.BLOCK.iter_unpack(found.block_rows)]
    return assembled(entries, crcs, at, found.about.most_ms, found.about.due_ms)


def test_a_segment_of_a_tier_is_read() -> None:
    index = decode_index(TIER_INDEX)
    assert index.about.whose == WHOSE
    assert (index.about.base_offset, index.about.end, index.about.keys) == (7, 9, 2)
    assert (index.about.data_at, index.about.data_bytes) == (32, len(TIER_DATA))
    place, size = index.data_at(0, 1)
    data, _, columns = index.open_block(0, TIER_DATA[place : place + size])
    assert bytes(data[4:14]) == b"one coffee"
    assert columns.tags.tolist() == [-10, -3]
    assert columns.times.tolist() == [1000, 1001]


@given(st.data(), st.sampled_from([0, layout.ZSTD]))
def test_an_index_of_a_tier_says_what_todays_says(
    data: st.DataObject, flags: int
) -> None:
    segment = made(data.draw(some_records(flags)), flags)
    about = segment.about._replace(data_at=32, data_bytes=32 + segment.about.data_bytes)
    index = decode_index(segment.index)
    wanted = layout.encode_index(about, index.block_rows, [bytes(index.all_columns)])
    assert version_1.of_tier(tier_index(segment)) == wanted


@given(some_records(SPARSE), st.integers(1, 8))
def test_an_index_of_compacted_records_says_what_todays_says(
    records: list[One], times: int
) -> None:
    gap = records[-1].offset - records[0].offset + 1
    records = [
        one._replace(offset=one.offset + at * gap)
        for at in range(times)
        for one in records
    ]
    wanted = made(records, SPARSE, BlockLimits(GROUP, 1 << 30))
    about, blocks = layout.decode_head(wanted.index)
    about = about._replace(whose=COMPACTED, written_ms=about.most_ms)
    columns = bytes(decode_index(wanted.index).all_columns)
    found = version_1.of_compaction(compacted_index(records), COMPACTED)
    assert found == layout.encode_index(about, blocks, [columns])


def test_what_is_not_of_version_1_is_left_alone() -> None:
    segment = made(EXAMPLE)
    assert version_1.of_tier(segment.index) is None
    assert version_1.of_compaction(segment.index, COMPACTED) is None


@pytest.mark.parametrize("whole", [TIER_INDEX, compacted_index(EXAMPLE * 1)])
def test_each_byte_of_it_counts_and_no_cut_passes(whole: bytes) -> None:
    def read(data: bytes) -> None:
        decode_index(version_1.of_compaction(data, COMPACTED) or data)

    read(whole)
    for at in range(len(whole)):
        with pytest.raises(SegmentError):
            read(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(SegmentError):
            read(whole[:at])
    with pytest.raises(SegmentError):
        read(whole + b"\0")


def test_a_newer_version_of_the_old_form_is_refused_as_newer() -> None:
    data = compacted_index(EXAMPLE)
    with pytest.raises(NewerSegmentError, match="format 2; this program reads up to 1"):
        version_1.of_compaction(data[:8] + b"\2" + data[9:], COMPACTED)
