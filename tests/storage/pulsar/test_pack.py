"""Packs survive the way there and back, and nothing else is taken for one."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import Filter
from ropeway.storage.checked_header import CHECKED_FROM
from ropeway.storage.pulsar.pack import (
    HEADER,
    KEY_BYTES,
    MAGIC,
    RECORD_BYTES,
    Pack,
    UnknownPackError,
    decode,
    encode,
    encode_marker,
    hash_key,
    matching,
    peel,
    take,
)

hashes = st.integers(-(2**31), 2**31 - 1)
times = st.integers(-(2**63), 2**63 - 1)
keys = st.lists(st.text(max_size=5), max_size=3)
records = st.tuples(st.binary(max_size=30), hashes, keys)
appends = st.lists(
    st.tuples(st.lists(records, min_size=1, max_size=4), times), min_size=1, max_size=4
)

Given = list[tuple[list[tuple[bytes, int, list[str]]], int]]


def make(given_appends: Given, base_offset: int = 7) -> bytes:
    return encode(
        [(records, store_ms, None, 0) for records, store_ms in given_appends],
        base_offset,
    )


def one(*datas: bytes, tag: int = 0) -> Pack:
    return peel(make([([(data, tag, []) for data in datas], 1)]))


@given(appends, st.integers(0, 2**52))
def test_what_was_encoded_is_decoded(packed: Given, base_offset: int) -> None:
    pack = decode(memoryview(make(packed, base_offset)))
    flat = [(*record, ms) for records, ms in packed for record in records]
    assert (pack.base_offset, pack.count) == (base_offset, len(flat))
    assert pack.end == base_offset + len(flat)
    assert [bytes(pack.record(i)) for i in range(pack.count)] == [f[0] for f in flat]
    assert pack.tags.tolist() == [f[1] for f in flat]
    assert pack.times.tolist() == [f[3] for f in flat]
    for key in {key for f in flat for key in f[2]}:
        owners = [i for i, f in enumerate(flat) if key in f[2]]
        assert set(owners) <= set(pack.having(hash_key(key)))


@given(appends)
def test_peeling_shows_what_decoding_shows(packed: Given) -> None:
    data = make(packed)
    quick, checked = peel(data), decode(memoryview(data))
    assert quick.ends == checked.ends
    assert quick.data == checked.data
    assert quick.base_offset == checked.base_offset


@given(appends, st.data())
def test_a_cut_pack_is_refused(packed: Given, draw: st.DataObject) -> None:
    data = make(packed)
    cut = draw.draw(st.integers(0, len(data) - 1))
    with pytest.raises(UnknownPackError):
        decode(memoryview(data[:cut]))
    with pytest.raises(UnknownPackError):
        decode(memoryview(data + b"x"))


@given(appends, st.data())
def test_a_changed_bit_before_the_records_is_noticed(
    packed: Given, draw: st.DataObject
) -> None:
    data = bytearray(make(packed))
    records_at = len(data) - len(peel(bytes(data)).data)
    at = draw.draw(st.integers(0, records_at - 1))
    data[at] ^= 1 << draw.draw(st.integers(0, 7))
    with pytest.raises(UnknownPackError):
        decode(memoryview(bytes(data)))


@given(st.binary(max_size=200))
def test_garbage_is_refused(garbage: bytes) -> None:
    for data in (garbage, b"RWYP" + garbage):
        with pytest.raises(UnknownPackError):
            decode(memoryview(data))


def test_the_bytes_of_a_pack_are_these() -> None:
    data = make([([(b"ab", -1, ["k"]), (b"c", 5, [])], 9)], base_offset=258)
    assert data.hex(" ", -4) == (
        "52575950 35fcb869 01000000 4b000000 02010000 00000000 02000000 01000000 "
        "02000000 03000000 ffffffff 05000000 09000000 00000000 09000000 00000000 "
        "5d576208 00000000 616263"
    )


def test_the_bytes_of_a_marker_are_these() -> None:
    data = encode_marker(258)
    assert data.hex(" ", -4) == (
        "52575950 87014306 01000000 20000000 02010000 00000000 00000000 00000000"
    )
    pack = decode(memoryview(data))
    assert (pack.base_offset, pack.count, pack.end, pack.length) == (258, 0, 258, 32)


@given(st.integers(0, 2**44), st.data())
def test_a_marker_that_was_cut_or_changed_is_refused(
    offset: int, draw: st.DataObject
) -> None:
    data = bytearray(encode_marker(offset))
    cut = draw.draw(st.integers(0, len(data) - 1))
    with pytest.raises(UnknownPackError):
        decode(memoryview(bytes(data[:cut])))
    with pytest.raises(UnknownPackError):
        decode(memoryview(bytes(data) + b"x"))
    data[cut] ^= 1
    with pytest.raises(UnknownPackError):
        decode(memoryview(bytes(data)))


def test_records_that_end_elsewhere_than_the_table_says_are_refused() -> None:
    data = bytearray(make([([(b"ab", 0, [])], 9)]) + b"x")
    length = len(data)
    _, _, version, flags, _, base_offset, count, keys = HEADER.unpack_from(data)
    HEADER.pack_into(
        data, 0, MAGIC, 0, version, flags, length, base_offset, count, keys
    )
    table_end = HEADER.size + RECORD_BYTES * count + KEY_BYTES * keys
    checksum = crc32(data[CHECKED_FROM:table_end])
    HEADER.pack_into(
        data, 0, MAGIC, checksum, version, flags, length, base_offset, count, keys
    )
    with pytest.raises(
        UnknownPackError, match="3 bytes of records; its table ends at 2"
    ):
        decode(memoryview(bytes(data)))


def test_a_newer_format_is_told_from_damage() -> None:
    data = bytearray(make([([(b"ab", 0, [])], 9)]))
    data[8] = 2
    with pytest.raises(UnknownPackError, match=r"format 2; this program reads up to 1"):
        decode(memoryview(bytes(data)))
    with pytest.raises(UnknownPackError, match=r"begin with b'hell'.*b'RWYP'"):
        decode(memoryview(b"hello" * HEADER.size))


@given(
    st.lists(st.binary(max_size=9), min_size=1, max_size=9),
    st.data(),
)
def test_taking_obeys_its_limit_and_takes_as_much_as_fits(
    datas: list[bytes], draw: st.DataObject
) -> None:
    pack = one(*datas)
    begin = draw.draw(st.integers(0, len(datas) - 1))
    stop = draw.draw(st.integers(begin + 1, len(datas)))
    limit = draw.draw(st.integers(0, 60))
    forced = draw.draw(st.booleans())
    into: list[bytes | memoryview] = []
    count, size = take(pack, begin, stop, limit, forced=forced, into=into)
    assert b"".join(into) == b"".join(datas[begin : begin + count])
    assert size == sum(map(len, datas[begin : begin + count]))
    fits = [
        n
        for n in range(stop - begin + 1)
        if sum(map(len, datas[begin : begin + n])) <= limit
    ]
    assert count == max(fits[-1], 1 if forced else 0)


def test_a_filter_by_tags_looks_at_the_table_alone() -> None:
    pack = peel(make([([(b"", tag, []) for tag in (3, -7, 3, 0)], 1)]))
    assert matching(pack, 0, 4, Filter(tag_hashes={3})) == [0, 2]
    assert matching(pack, 1, 4, Filter(tag_hashes={3, 0})) == [2, 3]
    assert matching(pack, 1, 3, Filter()) == [1, 2]
