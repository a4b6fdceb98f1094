"""The ROCKETMQ header: golden bytes, codes beyond 16 bits, cuts and damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire.codes import Language, RequestCode
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import (
    ROCKETMQ,
    FrameReader,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.rocketmq_header import Fixed, decode, encode

GOLDEN = (
    b"\x00\x1e\x09\x02\x01\x00\x00\x00\x07\x00\x00\x00\x02"
    b"\x00\x00\x00\x02hi"
    b"\x00\x00\x00\x0c"
    b"\x00\x05topic\x00\x00\x00\x01T"
)
GOLDEN_PARTS = (Fixed(30, Language.GO, 513, 7, 2), "hi", {"topic": "T"})


def test_golden_bytes_are_written() -> None:
    assert encode(*GOLDEN_PARTS) == GOLDEN


def test_golden_bytes_are_read() -> None:
    assert decode(GOLDEN) == GOLDEN_PARTS


@given(
    st.builds(
        Fixed,
        st.integers(0, 0xCFF),
        st.integers(0, 255),
        st.integers(0, 0xFFFF),
        st.integers(-(1 << 31), (1 << 31) - 1),
        st.integers(-(1 << 31), (1 << 31) - 1),
    ),
    st.text(max_size=50),
    st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=6),
)
def test_any_header_survives(fixed: Fixed, remark: str, fields: dict[str, str]) -> None:
    assert decode(encode(fixed, remark, fields)) == (fixed, remark, fields)


@pytest.mark.parametrize(
    "code", [code for code in RequestCode if code > 0xFFFF], ids=lambda code: code.name
)
def test_codes_beyond_16_bits_are_known_by_their_lower_ones(code: RequestCode) -> None:
    (frame,) = FrameReader().feed(encode_frame(code, 1, serialize_type=ROCKETMQ))
    assert decode_envelope(ROCKETMQ, frame.header).code == code


def test_no_two_codes_share_their_lower_16_bits() -> None:
    assert len({code & 0xFFFF for code in RequestCode}) == len(RequestCode)


@pytest.mark.parametrize("end", range(len(GOLDEN)))
def test_a_cut_header_is_refused(end: int) -> None:
    with pytest.raises(FrameError, match="ROCKETMQ header is not a command"):
        decode_envelope(ROCKETMQ, GOLDEN[:end])


@pytest.mark.parametrize(
    ("at", "value"), [(13, -1), (13, 1 << 30), (19, -1), (19, 13), (30, -1), (30, 2)]
)
def test_an_impossible_length_is_refused(at: int, value: int) -> None:
    header = bytearray(GOLDEN)
    struct.pack_into(">i", header, at, value)
    with pytest.raises(FrameError, match="bytes at"):
        decode_envelope(ROCKETMQ, bytes(header))


@pytest.mark.parametrize("at", [17, 25, 34], ids=["remark", "key", "value"])
def test_text_that_is_not_utf_8_is_refused(at: int) -> None:
    header = bytearray(GOLDEN)
    header[at] = 0xFF
    with pytest.raises(FrameError, match="is 0xff; allowed: UTF-8"):
        decode_envelope(ROCKETMQ, bytes(header))


@given(st.integers(0, len(GOLDEN) - 1), st.integers(0, 255))
def test_damage_raises_frame_errors_only(at: int, value: int) -> None:
    header = bytearray(GOLDEN)
    header[at] = value
    try:
        envelope = decode_envelope(ROCKETMQ, bytes(header))
    except FrameError:
        return
    assert envelope.version in range(1 << 16)
