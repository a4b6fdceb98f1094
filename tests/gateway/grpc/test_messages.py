"""Messages are put together however cut, and requests inflated and decoded late."""

from __future__ import annotations

import asyncio
import functools
import gzip
import itertools
import math
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.grpc.framing import CallError, GrpcStatus
from ropeway.gateway.grpc.messages import (
    Compressed,
    MessageReader,
    Request,
    parts_so_far,
    prefixed,
)
from ropeway.gateway.grpc.protocol import (
    QueryRouteRequest,
    Resource,
    SendMessageRequest,
)
from ropeway.gateway.node import fair_queueing
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.request_limits import RequestsConfig
from tests.busy import busy
from tests.remoting import looped

LIMIT = 1 << 20
MOST = 1000
"""Bytes of a message, where it is put together."""
LIMITS = RequestsConfig(body_bytes=100_000)
squeeze = functools.partial(gzip.compress, mtime=0)
ASKED = QueryRouteRequest(topic=Resource(name="orders"))


class Calm:
    """A log that is never late, and a leadership that is certain for ever."""

    late_s = certain_until_s = math.inf

    def overdue_ms(self) -> int:
        return 0

    waiting_bytes = overdue_ms


def read(data, kind=QueryRouteRequest):
    async def reading():
        slices = FairQueue(LimitsConfig(), Calm(), Calm()).slices("127.0.0.1")
        request = Request(kind, data, LIMITS)
        try:
            return await request.message(lambda: slices)
        finally:
            request.done()
            assert not slices.flow.large.locked()

    return asyncio.run(reading())


@pytest.mark.parametrize(
    ("bits", "compress"), [(31, gzip.compress), (15, zlib.compress)]
)
def test_a_compressed_request_is_inflated_and_decoded(bits, compress):
    squeezed = Compressed(compress(ASKED.SerializeToString()), bits, LIMIT)
    assert read(squeezed) == ASKED
    assert read(ASKED.SerializeToString()) == ASKED


def test_a_long_one_is_inflated_on_a_thread_and_comes_out_whole():
    sent = SendMessageRequest()
    sent.messages.add().body = b"x" * 900_000
    squeezed = Compressed(squeeze(sent.SerializeToString()), 31, LIMIT)
    assert read(squeezed, SendMessageRequest) == sent


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (lambda: squeeze(bytes(LIMIT + 1)), GrpcStatus.RESOURCE_EXHAUSTED),
        (lambda: squeeze(bytes(LIMIT * 40)), GrpcStatus.RESOURCE_EXHAUSTED),
        (lambda: b"no gzip", GrpcStatus.INTERNAL),
        (lambda: squeeze(b"hello" * 9)[:-9], GrpcStatus.INTERNAL),
        (lambda: squeeze(bytes(LIMIT))[:-20], GrpcStatus.INTERNAL),
        (lambda: squeeze(b"\xff"), GrpcStatus.INTERNAL),
    ],
)
def test_what_cannot_be_inflated_or_decoded_is_refused(data, status):
    with pytest.raises(CallError) as error:
        read(Compressed(data(), 31, LIMIT), SendMessageRequest)
    assert error.value.status is status


def test_a_request_without_messages_is_short():
    long = QueryRouteRequest(topic=Resource(name="x" * 100_001)).SerializeToString()
    with pytest.raises(CallError, match="allowed: 100000"):
        read(long)


def test_a_request_of_very_many_parts_is_refused_before_it_is_decoded():
    with pytest.raises(CallError, match="too many fields"):
        read(b"\x0a\x00" * 40_000, SendMessageRequest)
    nested = SendMessageRequest()
    for _ in range(20_000):
        nested.messages.add().topic.name = ""
    *some, all_of_them = parts_so_far(
        nested.SerializeToString(), SendMessageRequest.DESCRIPTOR
    )
    assert all_of_them == 40_000
    # Whoever looks can stop, and let others go first, long before the end.
    assert some[0] < 2000
    assert all(after - before < 2000 for before, after in itertools.pairwise(some))


@given(st.binary(max_size=400))
def test_garbage_is_no_reason_to_fail_nor_to_go_on_for_ever(data):
    assert max(parts_so_far(data, SendMessageRequest.DESCRIPTOR)) <= 500


@given(st.lists(st.binary(max_size=20), max_size=30))
def test_every_message_and_property_counts_as_a_part(bodies):
    sent = SendMessageRequest()
    for body in bodies:
        message = sent.messages.add()
        message.body = body
        message.user_properties["k"] = "v"
    data = sent.SerializeToString()
    # Each message, its property, and that one's name and value.
    parts = sum(4 + bool(body) for body in bodies)
    assert list(parts_so_far(data, SendMessageRequest.DESCRIPTOR)) == [parts]


@looped
async def test_others_have_turns_while_a_long_request_is_looked_through(monkeypatch):
    monkeypatch.setattr(fair_queueing, "_TURN_S", 0)
    sent = SendMessageRequest()
    for _ in range(4000):
        sent.messages.add().body = b"x"
    waiting = FairQueue(LimitsConfig(), Calm(), Calm())
    request = Request(SendMessageRequest, sent.SerializeToString(), LIMITS)
    with busy(waiting) as other:
        assert await request.message(lambda: waiting.slices("127.0.0.1")) == sent
    assert other.turns >= 7


@looped
async def test_what_is_compressed_waits_for_its_turn_to_be_inflated():
    """Hundreds that came together were inflated at once, and nobody was heard."""
    waiting = FairQueue(LimitsConfig(), Calm(), Calm())
    squeezed = Compressed(squeeze(ASKED.SerializeToString()), 31, LIMIT)
    request = Request(QueryRouteRequest, squeezed, LIMITS)
    with busy(waiting) as other:
        assert await request.message(lambda: waiting.slices("127.0.0.1")) == ASKED
    assert other.turns


@given(st.lists(st.binary(max_size=50), max_size=5), st.data())
def test_messages_survive_any_cut(sent, data):
    stream = b"".join(map(prefixed, sent))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    reader, found = MessageReader(MOST), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[begin:end])
    assert found == sent
    assert not reader.unfinished


def compressed(data: bytes) -> bytes:
    return b"\1" + len(data).to_bytes(4, "big") + data


def test_compressed_messages_stay_compressed_until_they_are_wanted():
    for encoding, bits in (("gzip", 31), ("deflate", 15)):
        reader = MessageReader(MOST, encoding)
        both = compressed(b"squeezed") + prefixed(b"plain")
        squeezed = Compressed(b"squeezed", bits, MOST)
        assert reader.feed(both) == [squeezed, b"plain"]
        assert len(squeezed) == 8


@pytest.mark.parametrize(
    ("encoding", "sent", "status"),
    [
        ("identity", b"\0" + (MOST + 1).to_bytes(4, "big"), 8),
        ("identity", compressed(gzip.compress(b"hello", mtime=0)), 13),
    ],
)
def test_what_cannot_be_read_is_refused(encoding, sent, status):
    with pytest.raises(CallError) as error:
        MessageReader(MOST, encoding).feed(sent)
    assert error.value.status == status


@given(st.binary(max_size=300), st.sampled_from(["identity", "gzip", "deflate"]))
def test_garbage_raises_call_errors_only(data, encoding):
    reader = MessageReader(MOST, encoding)
    with suppress(CallError):
        reader.feed(data)
        reader.feed(data)
    assert len(reader.unfinished) <= MOST + 5 + len(data)


def test_unfinished_messages_are_counted():
    reader = MessageReader(MOST)
    assert reader.feed(prefixed(bytes(100))[:60]) == []
    assert len(reader.unfinished) == 60
