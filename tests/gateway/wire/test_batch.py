"""Batches: golden bytes, real captures, any batch, and damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire import properties
from ropeway.gateway.wire.batch import (
    BatchEntry,
    cut,
    decode_batch,
    encode_batch,
    has_more_than,
)
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.errors import MessageError
from tests import captures

GOLDEN = bytes.fromhex(
    "0000001f" "00000000" "00000000" "00000007" "00000005" "68656c6c6f"
    "0004" "61013102"
    "00000016" "00000000" "00000000" "00000000" "00000000" "0000"
)  # fmt: skip
GOLDEN_ENTRIES = [BatchEntry(7, b"hello", "a\x011\x02"), BatchEntry(0, b"", "")]

entries = st.builds(
    BatchEntry,
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.binary(max_size=100),
    st.text(max_size=100),
)


def test_golden_bytes_are_written() -> None:
    assert encode_batch(GOLDEN_ENTRIES) == GOLDEN


def test_golden_bytes_are_read() -> None:
    assert decode_batch(GOLDEN) == GOLDEN_ENTRIES


def test_captured_batches_are_read_and_written_to_the_same_bytes() -> None:
    seen = 0
    for capture in captures.load(RequestCode.SEND_BATCH_MESSAGE):
        body = capture.request.raw.body
        got = decode_batch(body)
        assert encode_batch(got) == body
        seen += len(got)
        for entry, told in zip(got, capture.request.batch or (), strict=True):
            assert entry.body.decode() == told["body"]
            assert entry.flag == told["flag"]
            assert properties.parse(entry.properties) == told["properties"]
    assert seen


@given(st.lists(entries, max_size=6))
def test_any_batch_survives(sent: list[BatchEntry]) -> None:
    assert decode_batch(encode_batch(sent)) == sent


@pytest.mark.parametrize("end", [end for end in range(1, len(GOLDEN)) if end != 31])
def test_a_cut_batch_is_refused(end: int) -> None:
    with pytest.raises(MessageError, match="batch entry"):
        decode_batch(GOLDEN[:end])


@given(st.integers(0, len(GOLDEN) - 1), st.integers(0, 255))
def test_damage_raises_message_errors_only(at: int, value: int) -> None:
    data = bytearray(GOLDEN)
    data[at] = value
    try:
        got = decode_batch(bytes(data))
    except MessageError:
        return
    assert len(encode_batch(got)) == len(data)


@given(st.binary(max_size=200))
def test_garbage_raises_message_errors_only(data: bytes) -> None:
    try:
        got = decode_batch(data)
    except MessageError:
        return
    assert len(encode_batch(got)) == len(data)


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (0, -1, "batch entry 0 of -1 bytes; allowed: 22 to 53"),
        (0, 21, "batch entry 0 of 21 bytes; allowed: 22 to 53"),
        (0, 54, "batch entry 0 of 54 bytes; allowed: 22 to 53"),
        (16, -1, "batch entry 0 of 31 bytes has a body of -1"),
        (16, 10, "batch entry 0 of 31 bytes has a body of 10"),
        (16, (1 << 31) - 1, "has a body of 2147483647"),
        (31, 23, "batch entry 1 of 23 bytes; allowed: 22 to 22"),
    ],
)
def test_an_impossible_length_is_named(at: int, value: int, said: str) -> None:
    data = bytearray(GOLDEN)
    struct.pack_into(">i", data, at, value)
    with pytest.raises(MessageError, match=said):
        decode_batch(bytes(data))


@pytest.mark.parametrize("length", [-1, 3, 5])
def test_impossible_properties_are_named(length: int) -> None:
    data = bytearray(GOLDEN)
    struct.pack_into(">h", data, 25, length)
    with pytest.raises(MessageError, match=f"31 bytes has properties of {length}"):
        decode_batch(bytes(data))


def test_properties_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(
        MessageError, match=r"batch entry 0: byte \d of a text is 0xff; allowed: UTF-8"
    ):
        decode_batch(GOLDEN[:27] + b"\xff" + GOLDEN[28:])


@pytest.mark.parametrize(
    "entry",
    [
        BatchEntry(0, b"", "x" * 32768),
        BatchEntry(1 << 31, b"", ""),
        BatchEntry(0, b"", "\ud800"),
    ],
    ids=["long properties", "flag", "surrogate"],
)
def test_a_member_that_does_not_fit_is_refused(entry: BatchEntry) -> None:
    with pytest.raises(MessageError, match="batch entry 1: "):
        encode_batch([GOLDEN_ENTRIES[0], entry])


@given(st.lists(entries, max_size=6), st.integers(1, 7))
def test_messages_are_counted_before_they_are_read(
    batch: list[BatchEntry], allowed: int
) -> None:
    assert has_more_than(allowed, encode_batch(batch)) is (len(batch) > allowed)


def test_what_is_cut_or_no_entry_does_not_count() -> None:
    padding = bytes(100)
    assert has_more_than(2, encode_batch(GOLDEN_ENTRIES) + padding) is True
    assert has_more_than(3, encode_batch(GOLDEN_ENTRIES) + padding) is False
    long = BatchEntry(0, bytes(100), "")
    assert has_more_than(2, encode_batch([long])[:-1]) is False
    assert has_more_than(2, encode_batch([long])) is False


@given(st.lists(entries, max_size=9), st.integers(1, 4))
def test_a_batch_is_cut_into_batches(batch: list[BatchEntry], messages: int) -> None:
    data = encode_batch(batch)
    parts = [*cut(data, messages, len(data))]
    assert b"".join(parts) == data
    sizes = [len(decode_batch(part)) for part in parts]
    assert sum(sizes) == len(batch)
    assert all(size == messages for size in sizes[:-1])
    assert not sizes or 1 <= sizes[-1] <= messages


@given(st.lists(entries, max_size=9), st.integers(1, 100))
def test_a_part_ends_where_it_is_long(batch: list[BatchEntry], size_bytes: int) -> None:
    data = encode_batch(batch)
    parts = [*cut(data, 1000, size_bytes)]
    assert b"".join(parts) == data
    for part in parts:
        *front, last = decode_batch(part)
        assert len(encode_batch(front)) < size_bytes
        assert last
        assert part is parts[-1] or len(part) >= size_bytes


@given(st.binary(max_size=200), st.integers(1, 4), st.integers(1, 100))
def test_what_is_no_batch_is_cut_and_nothing_is_left_out(
    data: bytes, messages: int, size_bytes: int
) -> None:
    assert b"".join(cut(data, messages, size_bytes)) == data


def test_errors_count_the_entries_in_front_of_a_part() -> None:
    with pytest.raises(MessageError, match="batch entry 9 of"):
        decode_batch(GOLDEN[:-1], 8)


@given(st.binary(max_size=200), st.integers(1, 7))
def test_what_is_no_batch_is_counted_as_far_as_it_goes(
    data: bytes, allowed: int
) -> None:
    assert has_more_than(allowed, data) in {True, False}
