"""Damaged captures thrown at every decoder: documented errors only, and no leak.

`ROPEWAY_FUZZ_ROUNDS` multiplies the rounds, `ROPEWAY_SEED` repeats the fresh ones:

    $ ROPEWAY_FUZZ_ROUNDS=100 ROPEWAY_SEED=7 python -m pytest tests/fuzz
"""

from __future__ import annotations

import gc
import os
import random
import tracemalloc
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest

import ropeway.gateway.wire.commands  # noqa: F401 - fills the registry
from ropeway.gateway.wire import batch, bodies, header, message, message_id, properties
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.errors import FrameError, HeaderError, MessageError
from ropeway.gateway.wire.frame import (
    FrameReader,
    RawFrame,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import decode_fields
from tests import captures
from tests.chance import fixed_and_fresh
from tests.fuzz.mutate import mutate

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

ROUNDS = 5000 * int(os.environ.get("ROPEWAY_FUZZ_ROUNDS", "1"))
MAX_FRAME_BYTES = 1 << 20
GROWTH_BYTES = 128 * 1024

BODIES = [
    kind
    for kind in vars(bodies).values()
    if isinstance(kind, type)
    and issubclass(kind, bodies.Body)
    and kind is not bodies.Body
]


def read_stream(data: bytes) -> None:
    reader = FrameReader(MAX_FRAME_BYTES)
    half = len(data) // 2
    for part in (data[:half], data[half:]):
        for frame in reader.feed(part):
            read_frame(frame)


def read_frame(frame: RawFrame) -> None:
    envelope = decode_envelope(frame.serialize_type, frame.header)
    try:
        fields = decode_fields(envelope.ext_fields)
        row = header.ROWS.get(envelope.code)
        if row:
            got = header.decode_request(row, envelope.ext_fields)
            encode_frame(envelope.code, envelope.opaque, fields=header.to_fields(got))
    except HeaderError:
        return
    encode_frame(
        0,
        envelope.opaque,
        fields=fields,
        remark=envelope.remark,
        serialize_type=frame.serialize_type,
    )


def read_header(data: bytes) -> None:
    # Damage to a whole frame mostly ends at its lengths; this goes behind them.
    read_frame(RawFrame(data[0] if data else 0, data[1:], b""))


def read_fields(data: bytes) -> None:
    for row in header.ROWS.values():
        for kind in (row.header, row.reply):
            try:
                header.from_fields(kind, msgspec.Raw(data))
            except HeaderError:
                continue


def read_bodies(data: bytes) -> None:
    for kind in BODIES:
        try:
            bodies.encode(bodies.decode(kind, data))
        except HeaderError:
            continue


def read_messages(data: bytes) -> None:
    for part in message.split(data):
        got = message.decode(part)
        assert message.encode(got)
        assert message.view_properties(part) == got.properties.encode()
        pairs = properties.parse(got.properties)
        properties.dump(pairs)
        properties.key_words(pairs)
        properties._hash.__wrapped__(pairs.get(properties.TAGS, ""))


def read_batch(data: bytes) -> None:
    got = batch.decode_batch(data)
    assert batch.decode_batch(batch.encode_batch(got)) == got


def read_ids(data: bytes) -> None:
    parsed = message_id.parse_offset_msg_id(data.decode("latin-1"))
    message_id.pack(*message_id.unpack(parsed.message_id)[1:])


TARGETS: dict[str, tuple[Callable[[bytes], None], dict[type[Exception], str]]] = {
    "stream": (read_stream, {FrameError: "the connection is closed"}),
    "headers": (read_header, {FrameError: "the connection is closed"}),
    "fields": (read_fields, {}),
    "bodies": (read_bodies, {}),
    "messages": (read_messages, {MessageError: "the store or the client refuses it"}),
    "batch": (read_batch, {MessageError: "the request is answered MESSAGE_ILLEGAL"}),
    "ids": (read_ids, {MessageError: "the request is answered with an error"}),
}
"""Every decoder, and the errors that may leave it, each with what happens then.

A `HeaderError` is caught inside: it ends one field set or body and not the stream.
"""


@cache
def seeds(target: str) -> tuple[bytes, ...]:
    sides = [side for capture in captures.load_all() for side in capture.sides]
    raws = [side.raw for side in sides]
    stored = [
        capture.response.raw.body
        for code in (RequestCode.PULL_MESSAGE, RequestCode.VIEW_MESSAGE_BY_ID)
        for capture in captures.load(code)
        if capture.response and capture.response.raw.body
    ]
    found = {
        "stream": [side.data for side in sides],
        "headers": [bytes((raw.serialize_type,)) + raw.header for raw in raws],
        "fields": [
            bytes(decode_envelope(raw.serialize_type, raw.header).ext_fields)
            for raw in raws
        ],
        "bodies": [raw.body for raw in raws if raw.body[:1] == b"{"],
        "messages": stored,
        "batch": [
            capture.request.raw.body
            for capture in captures.load(RequestCode.SEND_BATCH_MESSAGE)
        ],
        "ids": [
            b"7F000001000052130000000000000E91",
            b"20010DB800000000000000000000000100002A9F00000000000004B4",
        ],
    }
    return tuple(found[target])


def attack(target: str, chance: random.Random) -> bool:
    """One round; says whether the decoder took the damaged bytes."""
    read, allowed = TARGETS[target]
    corpus = seeds(target)
    data = mutate(chance, chance.choice(corpus), corpus)
    try:
        read(data)
    except tuple(allowed):
        return False
    except Exception as error:
        error.add_note(f"{target} was given {data.hex()}")
        raise
    return True


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_are_taken(target: str) -> None:
    read, _ = TARGETS[target]
    assert seeds(target)
    for data in seeds(target)[:50]:
        read(data)


@fixed_and_fresh
@pytest.mark.parametrize("target", TARGETS)
def test_damage_raises_documented_errors_only(target: str, seed: int) -> None:
    chance = random.Random(seed)
    rounds = ROUNDS // 8 if target in ("fields", "bodies") else ROUNDS
    taken = sum(attack(target, chance) for _ in range(rounds))
    assert taken, "every round was refused: the damage is too coarse to test much"


@fixed_and_fresh
def test_decoders_keep_nothing_of_what_they_were_given(seed: int) -> None:
    chance = random.Random(seed)

    def rounds(count: int) -> None:
        for _ in range(count):
            for target in TARGETS:
                attack(target, chance)
        message._address.cache_clear()
        gc.collect()

    rounds(10)
    tracemalloc.start()
    try:
        rounds(10)
        before, _ = tracemalloc.get_traced_memory()
        rounds(60)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < GROWTH_BYTES


def test_a_stream_that_never_ends_its_frame_is_kept_to_the_limit() -> None:
    reader = FrameReader(MAX_FRAME_BYTES)
    front = (MAX_FRAME_BYTES).to_bytes(4, "big") + (10).to_bytes(4, "big")
    tracemalloc.start()
    try:
        reader.feed(front)
        for _ in range(MAX_FRAME_BYTES - 100):
            assert not reader.feed(b"x")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.pending_bytes == MAX_FRAME_BYTES - 100 + len(front)
    assert held < 2 * MAX_FRAME_BYTES
