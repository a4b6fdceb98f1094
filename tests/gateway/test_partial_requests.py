"""Arriving: what has come of unfinished requests, wherever the network cuts frames."""

from __future__ import annotations

import struct

import pytest

from ropeway.gateway.partial_requests import PartialRequests

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LIMIT = 1 << 20
DATA, HEADERS, RESET = 0, 1, 3


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """An HTTP/2 frame."""
    size = len(payload)
    return (
        struct.pack(">BHBBI", size >> 16, size & 0xFFFF, kind, flags, stream) + payload
    )


def request(size: int) -> bytes:
    """A request as gRPC frames it."""
    return struct.pack(">BI", 0, size) + bytes(size)


def fed(*frames: bytes) -> int:
    """What is left of frames that came whole."""
    return PartialRequests(LIMIT).feed(PREFACE + b"".join(frames))


def test_a_part_counts_until_the_rest_is_there():
    arriving = PartialRequests(LIMIT)
    whole = request(1000)
    assert arriving.feed(PREFACE + frame(HEADERS, 4, 1, b"x" * 50)) == 0
    assert arriving.feed(frame(DATA, 0, 1, whole[:605])) == 600
    assert arriving.feed(frame(DATA, 0, 1, whole[605:705])) == 100
    assert arriving.feed(frame(DATA, 1, 1, whole[705:])) == -700


def test_a_stream_that_stays_open_holds_only_what_is_not_whole():
    commands = request(300) + request(0) + request(200)
    assert fed(frame(DATA, 0, 1, commands)) == 0
    assert fed(frame(DATA, 0, 1, commands + request(100)[:50])) == 45


def test_a_request_that_is_given_up_is_forgotten():
    part = frame(DATA, 0, 3, request(5000)[:2000])
    assert fed(part) == 1995
    assert fed(part, frame(RESET, 0, 3, b"\0\0\0\x08")) == 0
    assert fed(part, frame(DATA, 1, 3)) == 0


def test_requests_of_several_streams_are_told_apart():
    one, two = request(400), request(600)
    assert fed(frame(DATA, 0, 1, one[:205]), frame(DATA, 0, 3, two[:305])) == 500
    assert (
        fed(
            frame(DATA, 0, 1, one[:205]),
            frame(DATA, 0, 3, two[:305]),
            frame(DATA, 1, 1, one[205:]),
        )
        == 300
    )


def test_what_the_server_refuses_for_its_length_is_not_counted():
    assert fed(frame(DATA, 0, 1, request(LIMIT + 1)[:5000])) == 0


@pytest.mark.parametrize("size", [100, 40_000])
def test_any_cut_comes_to_the_same(size: int):
    whole = request(size)
    middle = size // 2
    sent = (
        PREFACE
        + frame(HEADERS, 4, 1, b"y" * 30)
        + frame(DATA, 0, 1, whole[:middle])
        + frame(DATA, 1, 3, request(20))
        + frame(DATA, 0, 1, whole[middle:-10])
    )
    for step in (1, 7, 1000):
        arriving = PartialRequests(LIMIT)
        parts = [sent[at : at + step] for at in range(0, len(sent), step)]
        assert sum(map(arriving.feed, parts)) == size - 10
        assert arriving.feed(frame(DATA, 1, 1, whole[-10:])) == 10 - size
