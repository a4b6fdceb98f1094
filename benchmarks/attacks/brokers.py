"""Attacks of producers and of whoever speaks RocketMQ's remoting protocol."""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any

from benchmarks.attacks.attack import BOTH, UNKNOWN, Attack, Target
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import PREFIX, encode_frame
from ropeway.gateway.wire.properties import dump
from tests.requests import sending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.wire.commands.send import SendMessage

_MIB = 1 << 20


def send(topic: str = "attacked", **changes: Any) -> SendMessage:
    """The header of a send."""
    return sending(topic, producer_group="attackers", **changes)


def many(frame: bytes, size: int = 64 * 1024) -> Iterator[bytes]:
    """The same again and again."""
    return itertools.repeat(frame * max(size // len(frame), 1))


def known_first(target: Target, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Be known before, where that allows more."""
    if target.user is None:
        return chunks
    first = target.request(RequestCode.HEART_BEAT, b'{"clientID":"me"}')
    return itertools.chain([first, b""], chunks)


def unending(size: int) -> Iterator[bytes]:
    """A frame of such a size but for its end."""
    header = 200
    yield PREFIX.pack(size, header) + bytes(header)
    left = size - header - 4096
    while left > 0:
        yield bytes(min(left, 64 * 1024))
        left -= 64 * 1024


def _unending(target: Target, _: int) -> Iterator[bytes]:
    if target.user is None:
        return unending(4 * _MIB)
    return known_first(target, unending(16 * _MIB))


def _small(target: Target, _: int) -> Iterator[bytes]:
    return many(target.request(send(), b"x"))


def _one_way(target: Target, _: int) -> Iterator[bytes]:
    return many(target.request(send(), b"x", one_way=True))


def _wrong(target: Target, _: int) -> Iterator[bytes]:
    stranger = target._replace(user="attacker")
    return many(_bad(stranger.request(send(), b"x" * 100)))


def _bad(frame: bytes) -> bytes:
    at = frame.index(b'"Signature":"') + len(b'"Signature":"')
    return frame[:at] + b"AAAA" + frame[at + 4 :]


def _wrong_large(target: Target, _: int) -> Iterator[bytes]:
    stranger = target._replace(user="attacker")
    return many(_bad(stranger.request(send(), bytes(4 * _MIB))))


def _beats(target: Target, number: int) -> Iterator[bytes]:
    body = bodies.encode(bodies.HeartbeatData(client_id=f"me{number}"))
    return many(target.request(RequestCode.HEART_BEAT, body))


def _codes(target: Target, _: int) -> Iterator[bytes]:
    return many(b"".join(target.request(code, b"{}") for code in RequestCode))


def _answers(target: Target, _: int) -> Iterator[bytes]:
    return known_first(target, many(encode_frame(0, 7, flag=1)))


def _headers(target: Target, _: int) -> Iterator[bytes]:
    size = 60 * 1024 if target.user is None else 250 * 1024
    fields = {f"field{number}": "x" for number in range(size // 20)}
    frame = target.request(RequestCode.HEART_BEAT, b"{}", fields)
    return known_first(target, many(frame))


def _nested(_: Target, __: int) -> Iterator[bytes]:
    text = b'{"code":34,"extFields":' + b'{"a":' * 9000 + b"1" + b"}" * 9000 + b"}"
    return many(PREFIX.pack(4 + len(text), len(text)) + text)


def _batch(size: int, pairs: dict[str, str]) -> bytes:
    text = dump(pairs).encode()
    front = struct.pack(">iiiii", 23 + len(text), 0, 0, 0, 1)
    return (front + b"x" + struct.pack(">h", len(text)) + text) * size


def _batches(target: Target, _: int) -> Iterator[bytes]:
    return many(
        target.request(send(batch=True), _batch(16_384, {"UNIQ_KEY": "7F" * 16}))
    )


def _careful(target: Target, _: int) -> Iterator[bytes]:
    # Without keys of their own, messages go the long way.
    return many(target.request(send(batch=True), _batch(8192, {})))


def _properties(target: Target, _: int) -> Iterator[bytes]:
    pairs = {f"{number:x}": "x" for number in range(32_000 // 6)}
    frame = target.request(send(properties=dump(pairs)), b"x")
    return known_first(target, many(frame))


def _keys(target: Target, _: int) -> Iterator[bytes]:
    keys = " ".join(f"{number:x}" for number in range(32_000 // 5))
    return many(target.request(send(properties=dump({"KEYS": keys})), b"x"))


def _topics(target: Target, number: int) -> Iterator[bytes]:
    for count in itertools.count():
        yield target.request(send(f"t-{number}-{count}"), b"x")


def _messages(target: Target, _: int) -> Iterator[bytes]:
    return many(target.request(send(), bytes(4 * _MIB - 1)))


def _half(target: Target, _: int) -> Iterator[bytes]:
    pairs = {"UNIQ_KEY": "7F" * 16, "TRAN_MSG": "true", "PGROUP": "attackers"}
    return many(target.request(send(sys_flag=4, properties=dump(pairs)), b"x"))


def _timed(target: Target, _: int) -> Iterator[bytes]:
    pairs = {"UNIQ_KEY": "7F" * 16, "TIMER_DELAY_SEC": "3600"}
    return many(target.request(send(properties=dump(pairs)), b"x"))


def _nothing(_: Target, __: int) -> Iterator[bytes]:
    return iter(())


ATTACKS = (
    Attack("frames that never end", _unending, 256, BOTH),
    Attack("floods of small sends", _small, 50, BOTH),
    Attack("floods of one-way sends", _one_way, 50, BOTH),
    Attack("floods of heartbeats", _beats, 50, BOTH),
    Attack("requests of every code", _codes, 16, BOTH),
    Attack("answers that nobody asked for", _answers, 16, BOTH),
    Attack("wrong signatures", _wrong, 16, (UNKNOWN,)),
    Attack("wrong signatures of 4 MiB", _wrong_large, 16, (UNKNOWN,)),
    Attack("headers of very many fields", _headers, 16, BOTH),
    Attack("deep headers", _nested, 16, (UNKNOWN,)),
    Attack("connections that say nothing", _nothing, 3000, (UNKNOWN,)),
    Attack("connections that come and go", _nothing, 200, (UNKNOWN,), stays_s=0),
    Attack("batches of very many messages", _batches, 16),
    Attack("batches, the long way", _careful, 16),
    Attack("messages of very many properties", _properties, 16),
    Attack("messages of very many keys", _keys, 16),
    Attack("new topics without end", _topics, 16),
    Attack("messages of 4 MiB", _messages, 64),
    Attack("half messages without end", _half, 16),
    Attack("timed messages without end", _timed, 16),
)
