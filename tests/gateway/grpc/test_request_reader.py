"""Requests are inflated and decoded late, and no bomb of either kind goes off."""

from __future__ import annotations

import asyncio
import functools
import gzip
import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.grpc.framing import CallError, Compressed, GrpcStatus
from ropeway.gateway.grpc.protocol import (
    QueryRouteRequest,
    Resource,
    SendMessageRequest,
)
from ropeway.gateway.grpc.request_reader import Request, parts_so_far
from ropeway.gateway.node import fair_queueing
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.request_limits import RequestsConfig
from tests.busy import busy
from tests.remoting import looped

LIMIT = 1 << 20
LIMITS = RequestsConfig(body_bytes=100_000)
squeeze = functools.partial(gzip.compress, mtime=0)
ASKED = QueryRouteRequest(topic=Resource(name="orders"))


class Calm:
    """A log that is never late, and a leadership that is certain for ever."""

    overdue_ms = 0

    def check(self, now_s: float) -> None:
        """Nothing to see."""


def read(data, kind=QueryRouteRequest):
    async def reading():
        slices = FairQueue(LimitsConfig(), Calm(), Calm()).slices("127.0.0.1")
        request = Request(kind, data, LIMITS)
        try:
            return await request.message(slices)
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
        (squeeze(bytes(LIMIT + 1)), GrpcStatus.RESOURCE_EXHAUSTED),
        (squeeze(bytes(LIMIT * 40)), GrpcStatus.RESOURCE_EXHAUSTED),
        (b"no gzip", GrpcStatus.INTERNAL),
        (squeeze(b"hello" * 9)[:-9], GrpcStatus.INTERNAL),
        (squeeze(bytes(LIMIT))[:-20], GrpcStatus.INTERNAL),
        (squeeze(b"\xff"), GrpcStatus.INTERNAL),
    ],
)
def test_what_cannot_be_inflated_or_decoded_is_refused(data, status):
    with pytest.raises(CallError) as error:
        read(Compressed(data, 31, LIMIT), SendMessageRequest)
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
        assert await request.message(waiting.slices("127.0.0.1")) == sent
    assert other.turns >= 7


@looped
async def test_what_is_compressed_waits_for_its_turn_to_be_inflated():
    """Hundreds that came together were inflated at once, and nobody was heard."""
    waiting = FairQueue(LimitsConfig(), Calm(), Calm())
    squeezed = Compressed(squeeze(ASKED.SerializeToString()), 31, LIMIT)
    request = Request(QueryRouteRequest, squeezed, LIMITS)
    with busy(waiting) as other:
        assert await request.message(waiting.slices("127.0.0.1")) == ASKED
    assert other.turns
