"""Frames: golden bytes, any cut, real captures, and everything that can be wrong."""

from __future__ import annotations

import json
import struct
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire.codes import RESPONSE_FLAG, Language
from ropeway.gateway.wire.errors import FrameError, HeaderError
from ropeway.gateway.wire.frame import (
    JSON,
    LARGE_BYTES,
    ROCKETMQ,
    FrameReader,
    RawFrame,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import decode_fields
from tests import captures

GOLDEN_JSON = (
    b"\x00\x00\x00\x8e\x00\x00\x00\x88"
    b'{"code":30,"extFields":{"topic":"T","queueId":"2"},"flag":0,"language":"JAVA",'
    b'"opaque":7,"serializeTypeCurrentRPC":"JSON","version":513}'
    b"hi"
)
GOLDEN_ROCKETMQ = (
    b"\x00\x00\x00\x35\x01\x00\x00\x2f"
    b"\x00\x1e\x00\x02\x01\x00\x00\x00\x07\x00\x00\x00\x00"
    b"\x00\x00\x00\x00"
    b"\x00\x00\x00\x1a"
    b"\x00\x05topic\x00\x00\x00\x01T"
    b"\x00\x07queueId\x00\x00\x00\x012"
    b"hi"
)
GOLDEN = [
    pytest.param(JSON, GOLDEN_JSON, id="JSON"),
    pytest.param(ROCKETMQ, GOLDEN_ROCKETMQ, id="ROCKETMQ"),
]
ENCODINGS = st.sampled_from([JSON, ROCKETMQ])
I32S = st.integers(-(1 << 31), (1 << 31) - 1)
FIELDS = st.dictionaries(st.text(max_size=20), st.text(max_size=60), max_size=8)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    return encode_frame(
        draw(st.integers(0, 0x7FFF)),
        draw(I32S),
        flag=draw(st.integers(0, 3)),
        fields=draw(FIELDS),
        body=draw(st.binary(max_size=300)),
        remark=draw(st.none() | st.text(min_size=1, max_size=20)),
        serialize_type=draw(ENCODINGS),
    )


def sized(length: int, header_bytes: int = 0, kind: int = 0) -> bytes:
    return (length & 0xFFFFFFFF).to_bytes(4, "big") + (
        kind << 24 | header_bytes
    ).to_bytes(4, "big")


@pytest.mark.parametrize(("serialize_type", "data"), GOLDEN)
def test_golden_bytes_are_written(serialize_type: int, data: bytes) -> None:
    fields = {"topic": "T", "queueId": "2"}
    encoded = encode_frame(
        30, 7, fields=fields, body=b"hi", serialize_type=serialize_type
    )
    assert encoded == data


@pytest.mark.parametrize(("serialize_type", "data"), GOLDEN)
def test_golden_bytes_are_read(serialize_type: int, data: bytes) -> None:
    (frame,) = FrameReader().feed(data)
    assert (frame.serialize_type, frame.body) == (serialize_type, b"hi")
    envelope = decode_envelope(frame.serialize_type, frame.header)
    assert (envelope.code, envelope.opaque, envelope.flag) == (30, 7, 0)
    assert envelope.version == 513
    assert envelope.remark is None
    assert envelope.language == ("JAVA" if serialize_type == JSON else Language.JAVA)
    assert decode_fields(envelope.ext_fields) == {"topic": "T", "queueId": "2"}


@pytest.mark.parametrize("code", captures.codes())
def test_captured_frames_are_read_as_another_decoder_reads_them(code: int) -> None:
    for side in [side for capture in captures.load(code) for side in capture.sides]:
        envelope = decode_envelope(side.raw.serialize_type, side.raw.header)
        assert envelope.code == side.header["code"]
        assert envelope.opaque == side.header["opaque"]
        assert envelope.flag == side.header["flag"]
        assert envelope.version == side.header["version"]
        assert (envelope.remark or None) == (side.header.get("remark") or None)
        language = envelope.language
        name = Language(language).name if isinstance(language, int) else language
        assert name == side.header["language"]
        assert decode_fields(envelope.ext_fields) == {
            name: str(value) for name, value in side.fields.items()
        }


@pytest.mark.parametrize("code", captures.codes())
def test_captured_frames_are_written_again(code: int) -> None:
    for side in [side for capture in captures.load(code) for side in capture.sides]:
        raw = side.raw
        envelope = decode_envelope(raw.serialize_type, raw.header)
        had_fields = raw.serialize_type == ROCKETMQ or "extFields" in side.header
        again = encode_frame(
            envelope.code,
            envelope.opaque,
            flag=envelope.flag,
            fields=decode_fields(envelope.ext_fields) if had_fields else None,
            body=raw.body,
            remark=envelope.remark,
            language=Language[side.header["language"]],
            version=envelope.version,
            serialize_type=raw.serialize_type,
        )
        if raw.serialize_type == ROCKETMQ or side.header["language"] == "JAVA":
            assert again == side.data
        (frame,) = FrameReader().feed(again)
        assert frame.body == raw.body
        second = decode_envelope(frame.serialize_type, frame.header)
        assert decode_fields(second.ext_fields) == decode_fields(envelope.ext_fields)
        assert (second.code, second.opaque, second.flag, second.remark) == (
            envelope.code,
            envelope.opaque,
            envelope.flag,
            envelope.remark,
        )


@given(st.lists(frames(), max_size=5), st.data())
def test_frames_survive_any_cut(sent: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = FrameReader()
    got: list[RawFrame] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += reader.feed(stream[start:end])
    assert got == [frame for one in sent for frame in FrameReader().feed(one)]
    assert reader.pending_bytes == 0


@given(st.lists(frames(), max_size=5), st.data())
def test_large_frames_survive_any_cut(sent: list[bytes], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ropeway.gateway.wire.frame.LARGE_BYTES", 100)
        test_frames_survive_any_cut.hypothesis.inner_test(sent, data)


def test_a_large_frame_is_copied_once() -> None:
    size = 8 << 20
    data = encode_frame(10, 1, body=bytes(size))
    pieces = [data[at : at + 256_000] for at in range(0, len(data), 256_000)]
    reader = FrameReader()
    tracemalloc.start()
    try:
        for piece in pieces:
            got = reader.feed(piece)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(got[0].body) == size
    assert most < 1.2 * size


def test_what_is_missing_of_a_frame_is_known() -> None:
    data = encode_frame(10, 1, body=bytes(LARGE_BYTES))
    reader = FrameReader()
    assert (reader.missing_bytes, reader.is_large) == (0, False)
    reader.feed(data[:5])
    assert (reader.missing_bytes, reader.is_large) == (3, False)
    reader.feed(data[5:1000])
    assert (reader.missing_bytes, reader.is_large) == (len(data) - 1000, True)
    assert reader.feed(data[1000:])
    assert (reader.missing_bytes, reader.is_large) == (0, False)
    small = encode_frame(10, 1, body=bytes(1000))
    reader.feed(small[:-1])
    assert (reader.missing_bytes, reader.is_large) == (1, False)
    reader.clear()
    assert (reader.missing_bytes, reader.is_large) == (0, False)


@given(FIELDS, ENCODINGS, I32S, st.text(min_size=1, max_size=50))
def test_what_is_written_is_read(
    fields: dict[str, str], serialize_type: int, opaque: int, remark: str
) -> None:
    data = encode_frame(
        1,
        opaque,
        flag=RESPONSE_FLAG,
        fields=fields,
        remark=remark,
        serialize_type=serialize_type,
    )
    (frame,) = FrameReader().feed(data)
    envelope = decode_envelope(frame.serialize_type, frame.header)
    assert (envelope.opaque, envelope.remark) == (opaque, remark)
    assert decode_fields(envelope.ext_fields) == fields


def test_one_feed_gives_many_frames_and_keeps_the_rest() -> None:
    reader = FrameReader()
    assert len(reader.feed(GOLDEN_JSON * 1000 + GOLDEN_ROCKETMQ[:-1])) == 1000
    assert reader.pending_bytes == len(GOLDEN_ROCKETMQ) - 1
    (last,) = reader.feed(GOLDEN_ROCKETMQ[-1:])
    assert last.body == b"hi"


@pytest.mark.slow
def test_a_large_frame_may_come_byte_by_byte() -> None:
    # Were all that is pending copied at each byte, this would take hours.
    data = encode_frame(10, 1, body=bytes(4 << 20))
    reader = FrameReader()
    for index in range(len(data) - 1):
        assert not reader.feed(data[index : index + 1])
    (frame,) = reader.feed(data[-1:])
    assert len(frame.body) == 4 << 20


def test_a_frame_may_be_as_long_as_allowed_and_no_longer() -> None:
    assert FrameReader(100).feed(sized(100) + bytes(96))
    with pytest.raises(FrameError, match="frame of 101 bytes; allowed: 4 to 100"):
        FrameReader(100).feed(sized(101))


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 3, (1 << 31) - 1])
def test_an_impossible_length_is_refused(length: int) -> None:
    with pytest.raises(FrameError, match="allowed: 4 to 16777216"):
        FrameReader().feed(sized(length))


def test_a_header_longer_than_its_frame_is_refused() -> None:
    with pytest.raises(FrameError, match="header of 17 bytes in a frame of 20"):
        FrameReader().feed(sized(20, header_bytes=17))


def test_a_header_may_be_as_long_as_allowed_and_no_longer() -> None:
    reader = FrameReader(max_header_bytes=16)
    assert reader.feed(sized(21, header_bytes=16)) == []
    with pytest.raises(FrameError, match="header of 17 bytes; allowed: 16"):
        FrameReader(max_header_bytes=16).feed(sized(21, header_bytes=17))
    with pytest.raises(FrameError, match="header of 16 bytes in a frame of 19"):
        FrameReader(max_header_bytes=16).feed(sized(19, header_bytes=16))


def test_a_bad_frame_behind_a_good_one_is_refused() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(GOLDEN_JSON + sized(0))


@given(st.binary(max_size=200))
def test_garbage_raises_frame_errors_only(data: bytes) -> None:
    reader = FrameReader(max_frame_bytes=1000)
    try:
        got = reader.feed(data)
    except FrameError:
        return
    for frame in got:
        try:
            decode_envelope(frame.serialize_type, frame.header)
        except FrameError:
            continue


@given(st.integers(0, 255), st.binary(max_size=200))
def test_garbage_in_a_header_raises_frame_errors_only(kind: int, data: bytes) -> None:
    try:
        envelope = decode_envelope(kind, data)
    except FrameError:
        return
    assert isinstance(envelope.opaque, int)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="an array"),
        pytest.param(b"{}", id="no code"),
        pytest.param(b'{"code":"x"}', id="a word for a code"),
        pytest.param(b'{"code":2147483648}', id="a code beyond 32 bits"),
        pytest.param(b'{"code":1,"opaque":-2147483649}', id="an opaque below 32 bits"),
        pytest.param(b'{"code":1e400}', id="a number that no type has"),
        pytest.param(b'{"code":1,"remark":7}', id="a number for a remark"),
        pytest.param(b'{"code":1,"remark":"\xff"}', id="not UTF-8"),
        pytest.param(b'{"code":1}{', id="more behind it"),
        pytest.param(b'{"code":1,"x":' + b"[" * 100_000, id="deep nesting"),
        pytest.param(
            b'{"code":1,"extFields":' + b'{"a":' * 100_000 + b"}" * 100_001,
            id="deep nesting in the fields",
        ),
    ],
)
def test_what_is_no_command_is_refused(header: bytes) -> None:
    with pytest.raises(FrameError, match="header is not a command"):
        decode_envelope(JSON, header)


@pytest.mark.parametrize("kind", [2, 255])
def test_an_unknown_encoding_is_refused(kind: int) -> None:
    with pytest.raises(FrameError, match=f"encoding {kind}; allowed: 0 JSON, 1 ROCK"):
        decode_envelope(kind, b"{}")


@pytest.mark.parametrize(
    "raw", [b"[]", b"7", b'{"a":{}}', b'{"a":[1]}', b'{"a":"\xff"}', b"{"]
)
def test_fields_that_are_not_flat_are_refused(raw: bytes) -> None:
    with pytest.raises(HeaderError, match="extFields are not names and values"):
        decode_fields(raw)  # type: ignore[arg-type]


def test_fields_become_text_whatever_json_they_were() -> None:
    raw = b'{"a":1,"b":true,"c":false,"d":null,"e":"x","f":1.5}'
    assert decode_fields(raw) == {  # type: ignore[arg-type]
        "a": "1",
        "b": "true",
        "c": "false",
        "e": "x",
        "f": "1.5",
    }
    assert decode_fields(b"null") == {}  # type: ignore[arg-type]


def test_a_header_beyond_its_length_field_is_refused() -> None:
    with pytest.raises(HeaderError, match="allowed: 16777215"):
        encode_frame(0, 1, remark="x" * (1 << 24))


def test_an_answer_is_the_json_that_java_writes() -> None:
    (frame,) = FrameReader().feed(encode_frame(0, 9, flag=RESPONSE_FLAG))
    assert list(json.loads(frame.header)) == [
        "code",
        "flag",
        "language",
        "opaque",
        "serializeTypeCurrentRPC",
        "version",
    ]


@pytest.mark.parametrize(
    ("piece", "count"), [(1, 100_000), (1000, 1000), (20_000, 100), (1 << 18, 16)]
)
def test_what_is_kept_of_a_frame_takes_little_more_than_its_bytes(
    piece: int, count: int
) -> None:
    reader = FrameReader()
    reader.feed(struct.pack(">II", 16 << 20, 0))
    for _ in range(count):
        assert reader.feed(bytes(piece)) == []
    assert reader.pending_bytes == 8 + piece * count
    kept = sys.getsizeof(reader._parts) + sum(map(sys.getsizeof, reader._parts))
    assert kept < 1.2 * reader.pending_bytes + 1000
