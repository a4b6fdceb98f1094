"""Attacks on the web page: whoever reaches its port, with a browser or without."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from benchmarks.attacks.attack import UNKNOWN, Attack, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

_BY = (UNKNOWN,)
_HOST = b"Host: 127.0.0.1\r\n"


def _slow(_: Target, __: int) -> Iterator[bytes]:
    yield b"GET / HTTP/1.1\r\n" + _HOST
    for letter in itertools.repeat(b"x"):
        yield b""
        yield letter


def _idle(_: Target, __: int) -> Iterator[bytes]:
    return iter(())


def _gets(path: str) -> Any:
    def stream(_: Target, __: int) -> Iterator[bytes]:
        one = f"GET {path} HTTP/1.1\r\n".encode() + _HOST + b"\r\n"
        return itertools.repeat(one * 100)

    return stream


def _long_headers(_: Target, __: int) -> Iterator[bytes]:
    yield b"GET / HTTP/1.1\r\n" + _HOST
    for number in itertools.count():
        yield b"x%d: " % number + b"x" * 8000 + b"\r\n"


def _many_headers(_: Target, __: int) -> Iterator[bytes]:
    yield b"GET / HTTP/1.1\r\n" + _HOST
    yield from itertools.repeat(b"x: y\r\n" * 1000)


def _posts(size: int, body: bytes) -> Any:
    def stream(_: Target, __: int) -> Iterator[bytes]:
        yield (
            b"POST /api/session HTTP/1.1\r\n"
            + _HOST
            + b"X-Ropeway: 1\r\nContent-Type: application/json\r\n"
            + b"Content-Length: %d\r\n\r\n" % size
        )
        for _ in range(size // len(body)):
            yield body

    return stream


def _chunks(_: Target, __: int) -> Iterator[bytes]:
    yield (
        b"POST /api/session HTTP/1.1\r\n"
        + _HOST
        + b"X-Ropeway: 1\r\nContent-Type: application/json\r\n"
        + b"Transfer-Encoding: chunked\r\n\r\n"
    )
    yield from itertools.repeat(b"1\r\nx\r\n" * 1000)


def _guesses(_: Target, number: int) -> Iterator[bytes]:
    for count in itertools.count():
        body = b'{"access_key": "user-%d-%d", "secret_key": "x"}' % (number, count)
        yield (
            b"POST /api/session HTTP/1.1\r\n"
            + _HOST
            + b"X-Ropeway: 1\r\nContent-Type: application/json\r\n"
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body
        )


ATTACKS = (
    Attack("page: headers that come slowly", _slow, 1000, _BY, to_page=True),
    Attack("page: connections that say nothing", _idle, 3000, _BY, to_page=True),
    Attack(
        "page: connections that come and go", _idle, 200, _BY, stays_s=0, to_page=True
    ),
    Attack("page: floods of its start", _gets("/"), 50, _BY, to_page=True),
    Attack("page: floods of /metrics", _gets("/metrics"), 50, _BY, to_page=True),
    Attack("page: floods of /readyz", _gets("/readyz"), 50, _BY, to_page=True),
    Attack("page: floods of its API", _gets("/api/topics"), 50, _BY, to_page=True),
    Attack("page: long headers", _long_headers, 50, _BY, to_page=True),
    Attack("page: very many headers", _many_headers, 50, _BY, to_page=True),
    Attack(
        "page: bodies of 1 GiB",
        _posts(1 << 30, bytes(64 * 1024)),
        50,
        _BY,
        to_page=True,
    ),
    Attack("page: bodies in small chunks", _chunks, 50, _BY, to_page=True),
    Attack("page: guesses of passwords", _guesses, 50, _BY, to_page=True),
)
