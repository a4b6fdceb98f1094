"""Messages of calls: put together, inflated and decoded as they come, and sent.

    +------------+-----------+---------+
    | compressed | length  4 | message |  one after the other, cut by DATA anywhere
    +------------+-----------+---------+

A request is inflated and decoded once it is known who has sent it. Both can take a
thousand times what came, in memory and in time. So it is looked through before it is
decoded, and what is long is inflated on a thread.

Source: PROTOCOL-HTTP2.md of gRPC.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from google.protobuf.message import DecodeError, Message

from ropeway.gateway.grpc.framing import ENCODINGS, IDENTITY, CallError, GrpcStatus
from ropeway.gateway.grpc.protocol import Code, SendMessageRequest
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.node.fair_queueing import Slices
from ropeway.gateway.processors.fast_failure import BUSY
from ropeway.gateway.request_limits import RequestsConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_PREFIX = struct.Struct(">BI")
PREFIX_BYTES = _PREFIX.size
_AT_ONCE_BYTES = 64 * 1024
"""So much is inflated on the loop: a few hundred microseconds."""
CALL_BYTES = 6 * 1024
"""What a call takes, beside its request: 25 objects."""
_INFLATING_S = 300e-6
"""What it takes to inflate as much as is inflated on the loop, about."""
_SMALL_BYTES = 16 * 1024
"""A request of so many bytes has not enough parts to be looked through."""
_PARTS = 8192
"""Fields of one request, those within others included: some 3 ms of looking, and more
for working on a thousand messages."""
_LOOK_PARTS = 1024
"""Fields that are looked at without a pause."""
_ONE_BYTE = 0x7F
"""The most that a number of one byte says."""
_MAY_BE_LONG = {"SendMessageRequest", "TelemetryCommand"}
"""They bring messages, and stack traces."""
_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
_FIXED_BYTES = {_I64: 8, _I32: 4}
_THREADS = ThreadPoolExecutor(2, "inflate")
"""Each may hold one request of the greatest length."""


class Compressed(NamedTuple):
    """A message that is not inflated yet."""

    data: bytes
    window_bits: int
    """As zlib wants them."""
    limit_bytes: int
    """Of the message."""

    def __len__(self) -> int:
        return len(self.data)


class MessageReader(msgspec.Struct, eq=False):
    """Puts the messages of one stream together."""

    limit_bytes: int
    """Of one message, compressed or not."""
    encoding: str = IDENTITY
    """How it is compressed where it says it is."""
    unfinished: bytearray = msgspec.field(default_factory=bytearray)
    """What came of a message that is not whole."""
    need: int = PREFIX_BYTES
    """How long that has to be to be looked at again."""

    def feed(self, data: bytes) -> list[bytes | Compressed]:
        """Every message that is whole with these bytes, as it came.

        Raises:
            CallError: One is too long, or cannot be read.
        """
        if not self.unfinished and len(data) >= PREFIX_BYTES:
            compressed, size = _PREFIX.unpack_from(data)
            if not compressed and len(data) == PREFIX_BYTES + size:
                # As most are: one message, whole, in one frame.
                return [data[PREFIX_BYTES:]]
        self.unfinished += data
        found: list[bytes | Compressed] = []
        while len(self.unfinished) >= self.need:
            compressed, size = _PREFIX.unpack_from(self.unfinished)
            if size > self.limit_bytes:
                raise too_long(size, self.limit_bytes)
            self.need = PREFIX_BYTES + size
            if len(self.unfinished) < self.need:
                break
            message = bytes(self.unfinished[PREFIX_BYTES : self.need])
            del self.unfinished[: self.need]
            self.need = PREFIX_BYTES
            found.append(self._compressed(message) if compressed else message)
        return found

    def _compressed(self, data: bytes) -> Compressed:
        bits = ENCODINGS.get(self.encoding)
        if bits is None:
            raise CallError(
                GrpcStatus.INTERNAL, "a compressed message without grpc-encoding"
            )
        return Compressed(data, bits, self.limit_bytes)


def too_long(size: int, limit: int) -> CallError:
    """What a client is told whose message is too long."""
    return CallError(
        GrpcStatus.RESOURCE_EXHAUSTED,
        f"message of {size} bytes or more; allowed: {limit}",
    )


def prefixed(message: bytes) -> bytes:
    """A message as it is sent, not compressed."""
    return _PREFIX.pack(0, len(message)) + message


class Request(msgspec.Struct, eq=False):
    """A request that came."""

    kind: type[Message]
    """What it is to be decoded as."""
    data: bytes | Compressed
    """Its bytes."""
    limits: RequestsConfig
    """How large it may be."""
    large: Slices | None = None
    """Where it is one of the few that may be large, until it is done."""

    @property
    def size_bytes(self) -> int:
        """What it takes until it is answered, beside what is inflated and decoded."""
        # What is more counts where it waits.
        return CALL_BYTES + min(len(self.data), _SMALL_BYTES)

    async def message(self, slices: Callable[[], Slices]) -> Any:
        """It, decoded; once alone.

        Args:
            slices: Make what long work is done in.

        Raises:
            CallError: It cannot be.
            RefusedError: It is a send that waited for its turn for too long.
        """
        data, self.data = self.data, b""
        kind = self.kind.DESCRIPTOR
        limit = self.limits.body_bytes
        if isinstance(data, Compressed):
            if kind.name not in _MAY_BE_LONG:
                least = min(data.limit_bytes, limit)
                data = Compressed(data.data, data.window_bits, least)
            data = await self._inflated(data, slices())
        if len(data) > limit and kind.name not in _MAY_BE_LONG:
            raise too_long(len(data), limit)
        if len(data) > _SMALL_BYTES:
            pieces = slices()
            await self._wait(pieces)
            for parts in parts_so_far(data, kind):
                if parts > _PARTS:
                    raise CallError(
                        GrpcStatus.RESOURCE_EXHAUSTED,
                        f"{kind.name} with too many fields; allowed: {_PARTS}",
                    )
                await pieces.pause()
        try:
            return self.kind.FromString(data)
        except DecodeError as error:
            raise CallError(GrpcStatus.INTERNAL, f"no {kind.name}") from error

    def done(self) -> None:
        """What it brought needs no memory any more."""
        if self.large is not None:
            self.large.end_large()
            self.large = None

    async def _wait(self, slices: Slices) -> None:
        """Wait for a turn to look through a request.

        Raises:
            RefusedError: It is a send, and waited for too long.
        """
        why = await slices.why_late()
        if why and self.kind is SendMessageRequest:
            raise RefusedError(Code.TOO_MANY_REQUESTS, BUSY + why)

    async def _inflated(self, compressed: Compressed, slices: Slices) -> bytes:
        """What was compressed; on a thread where it is long, and few at a time.

        Raises:
            CallError: It is too long, or is none.
        """
        bits, data = compressed.window_bits, compressed.data
        await slices.pause(_INFLATING_S)
        try:
            inflating = zlib.decompressobj(bits)
            message = inflating.decompress(data, _AT_ONCE_BYTES)
            if inflating.unconsumed_tail:
                # Thousands may wait: what they have of it would be much.
                del inflating, message
                await slices.begin_large(max(len(data) - _SMALL_BYTES, 0))
                self.large = slices
                most = compressed.limit_bytes + 1
                inflating = zlib.decompressobj(bits)
                message = await asyncio.get_running_loop().run_in_executor(
                    _THREADS, inflating.decompress, data, most
                )
        except zlib.error as error:
            raise CallError(
                GrpcStatus.INTERNAL, "a message is not compressed as it says"
            ) from error
        if len(message) > compressed.limit_bytes:
            raise too_long(len(message), compressed.limit_bytes)
        if not inflating.eof:
            raise CallError(GrpcStatus.INTERNAL, "a compressed message ends too early")
        return message


def parts_so_far(data: bytes, kind: Any) -> Iterator[int]:
    """Count the fields of a message, fields of fields included.

    What is no message has few: decoding says what is wrong with it.

    Args:
        data: The message.
        kind: Its descriptor.

    Returns:
        How many were found by now, each time a little further, and all of them last.
    """
    left = [(0, len(data), kind)]
    count, say = 0, _LOOK_PARTS
    try:
        while left:
            at, end, kind = left.pop()
            inner = _inner(kind)
            while at < end:
                count += 1
                if count > say:
                    say += _LOOK_PARTS
                    yield count
                tag = data[at]
                at += 1
                if tag > _ONE_BYTE:
                    tag, at = _varint(data, at - 1)
                wire = tag & 7
                if wire == _BYTES:
                    size = data[at]
                    at += 1
                    if size > _ONE_BYTE:
                        size, at = _varint(data, at - 1)
                    field = inner.get(tag >> 3)
                    if field is not None:
                        left.append((at, min(at + size, end), field))
                    at += size
                elif wire == _VARINT:
                    _, at = _varint(data, at)
                else:
                    # Groups are none of ours; what they hold counts as fields.
                    at += _FIXED_BYTES.get(wire, 0)
    except IndexError:
        pass
    yield count


@cache
def _inner(kind: Any) -> dict[int, Any]:
    """The fields of a message that are messages, with the descriptors of those."""
    return {
        field.number: field.message_type
        for field in kind.fields
        if field.message_type is not None
    }


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F and shift < 70:  # noqa: PLR2004 - ten bytes of seven bits
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at
