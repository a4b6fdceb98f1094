"""Frames: read as they are made, wherever they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.frames import (
    DATA,
    HEADERS,
    MAX_FRAME_BYTES,
    PADDED,
    PREFACE,
    FrameReader,
    bare,
    frame,
    goaway_frame,
    reset_frame,
    settings_frame,
    settings_of,
    whole_answer,
    window_frame,
    word_of,
)

numbers = st.integers(0, (1 << 31) - 1)
frames = st.tuples(
    st.integers(0, 255), st.integers(0, 255), numbers, st.binary(max_size=100)
)


@given(st.lists(frames, max_size=5), st.data())
def test_frames_survive_any_cut(sent, data):
    stream = PREFACE + b"".join(frame(*one) for one in sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    reader, found = FrameReader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[begin:end])
    assert found == sent


def test_a_frame_is_nine_bytes_and_its_payload():
    assert frame(DATA, 1, 3, b"ab") == b"\0\0\2\0\1\0\0\0\3ab"
    assert frame(DATA, 1, 3, bytes(70_000))[:9] == b"\1\x11\x70\0\1\0\0\0\3"
    parts = (
        frame(HEADERS, 4, 3, b"a"),
        frame(DATA, 0, 3, b"b"),
        frame(HEADERS, 5, 3, b"c"),
    )
    assert whole_answer(3, b"a", b"b", b"c") == b"".join(parts)


def test_what_does_not_begin_like_http2_is_refused_at_once():
    reader = FrameReader()
    assert reader.feed(b"PRI * HT") == []
    with pytest.raises(ConnectionFault) as fault:
        reader.feed(b"ML")
    assert fault.value.code is ErrorCode.PROTOCOL_ERROR


def test_longer_frames_than_allowed_are_refused_by_their_head():
    reader = FrameReader()
    assert reader.feed(PREFACE) == []
    with pytest.raises(ConnectionFault) as fault:
        reader.feed(frame(DATA, 0, 1, bytes(MAX_FRAME_BYTES + 1))[:9])
    assert fault.value.code is ErrorCode.FRAME_SIZE_ERROR


def test_payloads_lose_their_padding():
    assert bare(0, b"\2ab") == b"\2ab"
    assert bare(PADDED, b"\2ab\0\0") == b"ab"
    assert bare(PADDED, b"\0ab") == b"ab"
    for wrong in (b"", b"\1", b"\3ab"):
        with pytest.raises(ConnectionFault):
            bare(PADDED, wrong)


def test_small_frames_have_the_bytes_of_the_rfc():
    assert settings_frame({4: 5}) == b"\0\0\6\4\0\0\0\0\0\0\4\0\0\0\5"
    assert settings_of(b"\0\4\0\0\0\5") == [(4, 5)]
    assert window_frame(3, 7) == b"\0\0\4\x08\0\0\0\0\3\0\0\0\7"
    assert reset_frame(3, 8) == b"\0\0\4\3\0\0\0\0\3\0\0\0\x08"
    assert goaway_frame(3, 1, "no") == b"\0\0\x0a\7\0\0\0\0\0\0\0\0\3\0\0\0\1no"
    assert word_of(b"\0\0\1\0") == 256
