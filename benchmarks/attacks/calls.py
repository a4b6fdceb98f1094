"""Attacks of gRPC clients, and of whoever speaks HTTP/2 to a broker's port."""

from __future__ import annotations

import gzip
import itertools
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from benchmarks.attacks.attack import BOTH, Attack, Target
from benchmarks.http2 import fields, frame
from ropeway.gateway.grpc import protocol
from ropeway.gateway.grpc.protocol import (
    Message,
    MessageType,
    QueryRouteRequest,
    ReceiveMessageRequest,
    Resource,
    SendMessageRequest,
    SystemProperties,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Stream = Callable[[Target, int], Iterator[bytes]]

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW, _MORE = 0, 1, 3, 4, 6, 8, 9
_END_STREAM, _END_HEADERS = 1, 4
_MIB = 1 << 20
_WINDOW_BYTES = (1 << 31) - 1
_OPENING = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, _WINDOW_BYTES))
    + frame(_WINDOW, 0, 0, struct.pack(">I", _WINDOW_BYTES - 65_535))
)
_PART = 16 * 1024
_PREFIX = struct.Struct(">BI")


def _block(
    target: Target, method: str, client_id: str | None = None, **more: str
) -> bytes:
    who = target.metadata()
    if client_id is not None:
        who["x-mq-client-id"] = client_id
    said = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/{protocol.SERVICE.full_name}/{method}",
        ":authority": "127.0.0.1",
        "te": "trailers",
        "content-type": "application/grpc",
        **more,
    }
    return fields({**said, **who})


def _streams() -> Iterator[int]:
    return itertools.count(1, 2)


def _cut(stream: int, data: bytes, last: int = _END_STREAM) -> bytes:
    parts = [data[at : at + _PART] for at in range(0, len(data), _PART)]
    framed = [frame(_DATA, 0, stream, part) for part in parts[:-1]]
    return b"".join([*framed, frame(_DATA, last, stream, parts[-1])])


def _calls(block: bytes, data: bytes, together: int) -> Iterator[bytes]:
    """So many calls at a time, and a pause that lets the server open its window."""
    yield _OPENING
    for stream in _streams():
        yield frame(_HEADERS, _END_HEADERS, stream, block) + _cut(stream, data)
        if stream // 2 % together == together - 1:
            yield b""


def repeated(
    target: Target, method: str, data: bytes, together: int
) -> Iterator[bytes]:
    """The same call again and again."""
    return _calls(_block(target, method), data, together)


def streaming(
    target: Target, method: str, data: bytes, streams: int, client_id: str = "me-%d"
) -> Iterator[bytes]:
    """Streams that stay open, by so many at a time, each another client's."""
    yield _OPENING
    for stream in _streams():
        block = _block(target, method, client_id=client_id % stream)
        yield frame(_HEADERS, _END_HEADERS, stream, block) + _cut(stream, data, 0)
        if stream // 2 % streams == streams - 1:
            yield b""


def _sent(size: int) -> Any:
    message = Message(
        topic=Resource(name="attacked"),
        system_properties=SystemProperties(
            message_id="7F" * 16, message_type=MessageType.NORMAL
        ),
        body=bytes(size),
    )
    return SendMessageRequest(messages=[message])


@cache
def _bombs(request: bytes) -> bytes:
    squeezed = gzip.compress(request, 9, mtime=0)
    return _PREFIX.pack(1, len(squeezed)) + squeezed


@cache
def _largest() -> bytes:
    return _sent(4 * _MIB - 256).SerializeToString()


def _largest_bombs(target: Target, _: int) -> Iterator[bytes]:
    block = _block(target, "SendMessage", **{"grpc-encoding": "gzip"})
    return _calls(block, _bombs(_largest()), 8)


def _too_large_bombs(target: Target, _: int) -> Iterator[bytes]:
    block = _block(target, "SendMessage", **{"grpc-encoding": "gzip"})
    return _calls(block, _bombs(bytes(60 * _MIB)), 1)


@cache
def _body_bomb() -> bytes:
    request = _sent(0)
    request.messages[0].system_properties.body_encoding = protocol.Encoding.GZIP
    request.messages[0].body = gzip.compress(bytes(64 * _MIB), 9, mtime=0)
    return _framed(request)


@cache
def _many_parts() -> bytes:
    request = SendMessageRequest()
    for _ in range(4000):
        request.messages.add().topic.name = "t"
    return _framed(request)


@cache
def _many_messages() -> bytes:
    one = _sent(1).messages[0]
    return _framed(SendMessageRequest(messages=[one] * 1300))


@cache
def _many_pairs() -> bytes:
    request = _sent(1)
    for number in range(2000):
        request.messages[0].user_properties[f"{number:x}"] = "x"
    return _framed(request)


def _framed(request: Any) -> bytes:
    data = request.SerializeToString()
    return _PREFIX.pack(0, len(data)) + data


def _sending(make: Callable[[], bytes]) -> Stream:
    def stream(target: Target, _: int) -> Iterator[bytes]:
        return _calls(_block(target, "SendMessage"), make(), 1)

    return stream


def _small(target: Target, _: int) -> Iterator[bytes]:
    data = QueryRouteRequest(topic=Resource(name="attacked")).SerializeToString()
    data = _PREFIX.pack(0, len(data)) + data
    return _calls(_block(target, "QueryRoute"), data, 64)


def _receives(target: Target, _: int) -> Iterator[bytes]:
    request = ReceiveMessageRequest(group=Resource(name="receivers"), batch_size=32)
    request.message_queue.topic.name = "attacked"
    request.long_polling_timeout.seconds = 20
    request.invisible_duration.seconds = 60
    data = request.SerializeToString()
    block = _block(target, "ReceiveMessage", **{"grpc-timeout": "30S"})
    return _calls(block, _PREFIX.pack(0, len(data)) + data, 90)


def _unending(target: Target, _: int) -> Iterator[bytes]:
    """Requests of which all but the end comes, within the window that there is."""
    block = _block(target, "SendMessage")
    yield _OPENING
    begun = _PREFIX.pack(0, 4 * _MIB)
    for stream in itertools.islice(_streams(), 90):
        yield frame(_HEADERS, _END_HEADERS, stream, block) + frame(
            _DATA, 0, stream, begun
        )
    for at in range(200):
        yield b""
        for stream in range(1, 8, 2):
            yield frame(_DATA, 0, stream, bytes(_PART))
        assert at >= 0


def _flood(piece: bytes) -> Stream:
    def stream(target: Target, _: int) -> Iterator[bytes]:
        block = _block(target, "SendMessage")
        return itertools.chain(
            [_OPENING, frame(_HEADERS, _END_HEADERS, 1, block)],
            itertools.repeat(piece * (_PART // len(piece))),
        )

    return stream


def _resets(target: Target, _: int) -> Iterator[bytes]:
    block = _block(target, "SendMessage")
    yield _OPENING
    for stream in _streams():
        yield frame(_HEADERS, _END_HEADERS, stream, block) + frame(
            _RESET, 0, stream, struct.pack(">I", 8)
        )


def _continued(target: Target, _: int) -> Iterator[bytes]:
    yield _OPENING + frame(_HEADERS, 0, 1, _block(target, "SendMessage"))
    yield from itertools.repeat(frame(_MORE, 0, 1, b"") * 1000)


def _indexed(target: Target, _: int) -> Iterator[bytes]:
    """A header that is said once, and then again and again in a byte each."""
    first = b"\x40\x04long" + b"\x7f\xb1\x1e" + b"x" * 4000
    block = _block(target, "SendMessage")
    yield _OPENING
    for stream in _streams():
        many = first + b"\xbe" * 12_000
        yield frame(_HEADERS, 0, stream, block) + frame(
            _MORE, _END_HEADERS, stream, many
        )


ATTACKS = (
    Attack("gRPC: bombs of 4 MiB", _largest_bombs, 32, BOTH),
    Attack("gRPC: bombs of 60 MiB", _too_large_bombs, 32, BOTH),
    Attack("gRPC: bodies that are bombs", _sending(_body_bomb), 32),
    Attack("gRPC: requests of very many parts", _sending(_many_parts), 32, BOTH),
    Attack("gRPC: very many messages", _sending(_many_messages), 32, BOTH),
    Attack("gRPC: very many properties", _sending(_many_pairs), 32),
    Attack("gRPC: floods of calls", _small, 50, BOTH),
    Attack("gRPC: receives without end", _receives, 50, BOTH),
    Attack("gRPC: requests that never end", _unending, 128, BOTH),
    Attack("HTTP/2: PING", _flood(frame(_PING, 0, 0, bytes(8)))),
    Attack("HTTP/2: SETTINGS", _flood(frame(_SETTINGS, 0, 0, bytes(0)))),
    Attack(
        "HTTP/2: SETTINGS of windows",
        _flood(
            frame(_SETTINGS, 0, 0, struct.pack(">HIHI", 4, 1, 4, _WINDOW_BYTES) * 500)
        ),
    ),
    Attack("HTTP/2: WINDOW_UPDATE", _flood(frame(_WINDOW, 0, 1, struct.pack(">I", 1)))),
    Attack("HTTP/2: empty DATA", _flood(frame(_DATA, 0, 1, b""))),
    Attack("HTTP/2: rapid resets", _resets),
    Attack("HTTP/2: CONTINUATION without end", _continued),
    Attack("HTTP/2: one long header very often", _indexed),
)
