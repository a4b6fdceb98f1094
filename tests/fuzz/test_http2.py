"""Damaged HTTP/2 thrown at connections: each is answered or ended, and nothing leaks.

`ROPEWAY_FUZZ_ROUNDS` is as for the other decoders.
"""

from __future__ import annotations

import os
import random

import pytest

from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.frames import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    FrameReader,
    frame,
    reset_frame,
    settings_frame,
    window_frame,
)
from ropeway.gateway.http2.headers import encode
from tests.chance import fixed_and_fresh
from tests.fuzz.mutate import mutate
from tests.gateway.http2.raw import REQUEST, Echoing
from tests.remoting import looped

pytestmark = pytest.mark.slow

ROUNDS = 1000 * int(os.environ.get("ROPEWAY_FUZZ_ROUNDS", "1"))
BLOCK = encode([*REQUEST, ("te", "trailers"), ("content-length", "5")])
INDEXED = b"\x83\x86\x44\x05/echo\x40\x01a\x01b\xbe"
SEEDS = (
    frame(HEADERS, 4, 1, BLOCK) + frame(DATA, 1, 1, b"hello"),
    frame(HEADERS, 4, 1, INDEXED) + frame(DATA, PADDED | 1, 1, b"\2hello\0\0"),
    frame(HEADERS, 0, 1, BLOCK[:9]) + frame(CONTINUATION, 4, 1, BLOCK[9:]),
    frame(HEADERS, 0x2C, 1, b"\1\0\0\0\3\0" + INDEXED + b"\0"),
    frame(HEADERS, 5, 1, INDEXED) + reset_frame(1, 8) + window_frame(0, 9),
    settings_frame({1: 0, 3: 9, 4: 3, 5: 1 << 15}) + frame(PING, 0, 0, bytes(8)),
    frame(PRIORITY, 0, 5, bytes(5)) + frame(HEADERS, 5, 5, INDEXED) * 2,
    window_frame(1, 5) + frame(GOAWAY, 0, 0, bytes(8)),
)


class Wire:
    """What is written goes here."""

    def __init__(self) -> None:
        self.out, self.closed = b"", False

    def write(self, data: bytes) -> None:
        self.out += data

    def close(self) -> None:
        self.closed = True

    def __getattr__(self, _name: str):
        return lambda *_: None


@fixed_and_fresh
@looped
async def test_damaged_frames_end_a_connection_in_order_or_not_at_all(seed: int):
    chance = random.Random(seed)
    ended = 0
    for _ in range(ROUNDS):
        sent = b"".join(chance.choices(SEEDS, k=chance.randint(1, 4)))
        sent = mutate(chance, sent, SEEDS)
        connection, wire = Echoing(), Wire()
        connection.connection_made(wire)
        connection.data_received(PREFACE + settings_frame({}))
        cut = chance.randint(0, len(sent))
        connection.data_received(sent[:cut])
        connection.data_received(sent[cut:])
        connection.sender.flush()
        reader = FrameReader()
        came = reader.feed(PREFACE + wire.out)
        goaways = [one[3] for one in came if one[0] == GOAWAY]
        assert len(goaways) == wire.closed
        for payload in goaways:
            ended += 1
            code = int.from_bytes(payload[4:8], "big")
            assert code in set(ErrorCode) - {ErrorCode.INTERNAL_ERROR}
        connection.connection_lost(None)
        assert connection.held_bytes == 0
        assert not connection.receiver.streams
    assert 0 < ended < ROUNDS
