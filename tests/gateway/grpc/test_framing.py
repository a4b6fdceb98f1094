"""Messages and their lengths, compressed or not, wherever they are cut."""

from __future__ import annotations

import gzip
from contextlib import suppress

import pytest
from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.grpc.framing import (
    CallError,
    Compressed,
    GrpcStatus,
    MessageReader,
    begins,
    ends,
    ends_at_once,
    percent_encoded,
    prefixed,
    timeout_s,
)

LIMIT = 1000


@given(st.lists(st.binary(max_size=50), max_size=5), st.data())
def test_messages_survive_any_cut(sent, data):
    stream = b"".join(map(prefixed, sent))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    reader, found = MessageReader(LIMIT), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[begin:end])
    assert found == sent
    assert not reader.unfinished


def compressed(data: bytes) -> bytes:
    return b"\1" + len(data).to_bytes(4, "big") + data


def test_compressed_messages_stay_compressed_until_they_are_wanted():
    for encoding, bits in (("gzip", 31), ("deflate", 15)):
        reader = MessageReader(LIMIT, encoding)
        both = compressed(b"squeezed") + prefixed(b"plain")
        squeezed = Compressed(b"squeezed", bits, LIMIT)
        assert reader.feed(both) == [squeezed, b"plain"]
        assert len(squeezed) == 8


@pytest.mark.parametrize(
    ("encoding", "sent", "status"),
    [
        ("identity", b"\0" + (LIMIT + 1).to_bytes(4, "big"), 8),
        ("identity", compressed(gzip.compress(b"hello", mtime=0)), 13),
    ],
)
def test_what_cannot_be_read_is_refused(encoding, sent, status):
    with pytest.raises(CallError) as error:
        MessageReader(LIMIT, encoding).feed(sent)
    assert error.value.status == status


@given(st.binary(max_size=300), st.sampled_from(["identity", "gzip", "deflate"]))
def test_garbage_raises_call_errors_only(data, encoding):
    reader = MessageReader(LIMIT, encoding)
    with suppress(CallError):
        reader.feed(data)
        reader.feed(data)
    assert reader.unfinished <= LIMIT + 5 + len(data)


def test_unfinished_messages_are_counted():
    reader = MessageReader(LIMIT)
    assert reader.feed(prefixed(bytes(100))[:60]) == []
    assert reader.unfinished == 60


def test_timeouts_have_units():
    told = {"2H": 7200, "3M": 180, "5S": 5, "250m": 0.25, "7u": 7e-6, "9n": 9e-9}
    for text, seconds in told.items():
        assert timeout_s(text) == pytest.approx(seconds)
    for wrong in ("", "S", "5", "5s", "123456789S", "-1S", "1.5S", "٣S"):
        with pytest.raises(CallError):
            timeout_s(wrong)


def test_texts_are_percent_encoded():
    assert percent_encoded("100% ok\n") == "100%25 ok%0A"
    assert percent_encoded("Grüße") == "Gr%C3%BC%C3%9Fe"
    assert percent_encoded("\udc80") == "?"


def test_blocks_say_how_a_call_went():
    decode = Decoder().decode
    assert dict(decode(begins()))[":status"] == "200"
    assert decode(ends(GrpcStatus.OK)) == [("grpc-status", "0")]
    refused = dict(decode(ends_at_once(GrpcStatus.UNIMPLEMENTED, "no: ü", 415)))
    assert refused[":status"] == "415"
    assert refused["grpc-status"] == "12"
    assert refused["grpc-message"] == "no: %C3%BC"
    assert refused["grpc-accept-encoding"] == "identity,gzip,deflate"
