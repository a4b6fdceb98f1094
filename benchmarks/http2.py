"""A load of gRPC calls that costs little: HTTP/2 frames, made once and sent again.

gRPC's own clients take as much CPU as a server does, and both share the machine. This
one sends the same header block with each call, and reads of an answer no headers but
where it ends (RFC 9113). It takes what one of RocketMQ's clients would.
"""

from __future__ import annotations

import selectors
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_INITIAL_WINDOW = 4
_FIRST_WINDOW = 65_535
_MOST = (1 << 31) - 1
_READ_BYTES = 1 << 18
_PATIENCE_S = 60.0
_HEAD = struct.Struct(">BHBBI")
_MESSAGE = struct.Struct(">BI")


class Exchange(NamedTuple):
    """One call."""

    method: str
    request: bytes
    done: Callable[[list[bytes]], None]
    """Gets the messages of the answer."""


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame."""
    size = len(payload)
    return _HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def fields(pairs: dict[str, str]) -> bytes:
    """A header block without compression, which every decoder reads alike."""
    block = b""
    for name, value in pairs.items():
        block += b"\x10" + _text(name) + _text(value)
    return block


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 0x7F:
        return bytes([len(data)]) + data
    rest, size = len(data) - 0x7F, b"\x7f"
    while rest >= 0x80:
        size += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return size + bytes([rest]) + data


class Session:
    """What one client says on one connection, and hears; others carry the bytes.

    Args:
        service: Whose methods are called.
        metadata: What comes with each call.
    """

    def __init__(self, service: str, metadata: dict[str, str]) -> None:
        self._service, self._metadata = service, metadata
        self._blocks: dict[str, bytes] = {}
        self._next_stream = 1
        self._open: dict[int, tuple[Exchange, bytearray]] = {}
        self._waiting: deque[Exchange] = deque()
        self._window = _FIRST_WINDOW
        self._rest = b""
        self.out = bytearray(
            _PREFACE
            + frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW, _MOST))
            + frame(_WINDOW, 0, 0, struct.pack(">I", _MOST - _FIRST_WINDOW))
        )

    def call(self, exchange: Exchange) -> None:
        """Make a call as soon as the server's window has room."""
        self._waiting.append(exchange)
        self._send_waiting()

    def open(self, exchange: Exchange) -> int:
        """Make a call that does not end, by a client that may say more; its stream."""
        self._send(exchange, 0)
        return self._next_stream - 2

    def _send_waiting(self) -> None:
        while self._waiting and self._window > len(self._waiting[0].request) + 5:
            self._send(self._waiting.popleft(), _END_STREAM)

    def _send(self, exchange: Exchange, flags: int) -> None:
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        block = self._blocks.get(exchange.method) or self._block(exchange.method)
        request = exchange.request
        self._window -= len(request) + 5
        self._open[stream] = (exchange, bytearray())
        self.out += frame(_HEADERS, _END_HEADERS, stream, block)
        self.out += frame(
            _DATA, flags, stream, _MESSAGE.pack(0, len(request)) + request
        )

    def _block(self, method: str) -> bytes:
        pseudo = {
            ":method": "POST",
            ":scheme": "http",
            ":path": f"/{self._service}/{method}",
            ":authority": "127.0.0.1",
            "te": "trailers",
            "content-type": "application/grpc",
            # RocketMQ's proxy fails where a call that receives has no deadline.
            "grpc-timeout": "600S",
        }
        made = self._blocks[method] = fields({**pseudo, **self._metadata})
        return made

    def take(self, data: bytes) -> None:
        """Take what has come.

        Raises:
            ConnectionError: The server has refused a call.
        """
        data, at = self._rest + data, 0
        while len(data) - at >= _HEAD.size:
            high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + (high << 16 | low)
            if end > len(data):
                break
            self._take(kind, flags, stream, data[at + _HEAD.size : end])
            at = end
        self._rest = data[at:]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _DATA and stream in self._open:
            self._open[stream][1].extend(payload)
        elif kind in (_RESET, _GOAWAY):
            raise ConnectionError(f"the server ended stream {stream}: {payload!r}")
        elif kind == _WINDOW and not stream:
            self._window += struct.unpack(">I", payload)[0]
            self._send_waiting()
        elif kind in (_SETTINGS, _PING) and not flags & _ACK:
            answer = payload if kind == _PING else b""
            self.out += frame(kind, _ACK, 0, answer)
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM and stream in self._open:
            exchange, body = self._open.pop(stream)
            exchange.done(list(_messages(body)))

    def first_message(self, stream: int) -> bool:
        """Whether an answer has begun to come."""
        return bool(self._open[stream][1])


class Connection(Session):
    """One connection of one client.

    Args:
        endpoint: Where the server listens.
        service: Whose methods are called.
        metadata: What comes with each call.
    """

    def __init__(self, endpoint: str, service: str, metadata: dict[str, str]) -> None:
        super().__init__(service, metadata)
        host, _, port = endpoint.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), _PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)

    def flush(self) -> None:
        """Write what the network takes now."""
        while self.out:
            try:
                sent = self.socket.send(self.out)
            except BlockingIOError:
                return
            del self.out[:sent]

    def read(self) -> None:
        """Take what has come.

        Raises:
            ConnectionError: The server has closed, or refused a call.
        """
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionError("the server closed")
        self.take(data)


def _messages(body: bytearray) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        _, size = _MESSAGE.unpack_from(body, at)
        at += _MESSAGE.size
        yield bytes(body[at : at + size])
        at += size


def run(connections: list[Connection], goes_on: Callable[[], bool]) -> None:
    """Exchange calls and answers for as long as wanted.

    Raises:
        TimeoutError: Nothing came for a minute.
    """
    with selectors.DefaultSelector() as selector:
        for one in connections:
            selector.register(one.socket, selectors.EVENT_READ, one)
        while goes_on():
            for one in connections:
                one.flush()
            stuck = any(one.out for one in connections)
            ready = selector.select(0.001 if stuck else _PATIENCE_S)
            if not ready and not stuck:
                raise TimeoutError(f"no answer for {_PATIENCE_S:.0f} s")
            for key, _ in ready:
                key.data.read()
