"""Frames of Pulsar's binary protocol, between bytes and commands; no I/O.

    frame            size u32 | command size u32 | command | rest
    rest of a SEND   0x0e01 u16 | CRC-32C u32 | metadata size u32 | metadata | payload
    of a MESSAGE     the same; before it may stand 0x0e02 u16 | size u32 | what the
                     broker added; 0x0e01 and the checksum may be missing

Sizes count what follows them; all integers are big-endian. The checksum covers all
that follows it. Source: pulsar.apache.org/docs/4.0.x/developing-binary-protocol and
Commands.java, 4.0.8.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import google_crc32c

from ropeway.storage.pulsar.commands import decode_command, encode_command
from ropeway.storage.pulsar.errors import WireError
from ropeway.storage.pulsar.protobuf import Message

CHECKSUM_MAGIC = 0x0E01
BROKER_METADATA_MAGIC = 0x0E02
Buffer = bytes | bytearray | memoryview
SIZE = struct.Struct(">I")
TWO_SIZES = struct.Struct(">II")
MAGIC_AND_SIZE = struct.Struct(">HI")
CHECKED = struct.Struct(">HII")
"""Magic, checksum and the size of the metadata."""

DEFAULT_MESSAGE_BYTES = 5 * 1024 * 1024
"""The largest message, before a broker said otherwise (`Commands`, 4.0.8)."""
PADDING_BYTES = 10 * 1024
"""How much longer than a message its frame may be (`Commands`, 4.0.8)."""
PIECE_BYTES = 64 * 1024
"""What is copied at a time for a checksum, whose library takes `bytes` only: so
little that it stays in the processor's cache."""


class Deframer:
    """Cuts what arrives into frames, each bytes of its own.

    Cutting a frame out is the only copy that is made of it.
    """

    def __init__(self) -> None:
        self.limit_bytes = DEFAULT_MESSAGE_BYTES + PADDING_BYTES
        """Longer frames are refused."""
        self._parts: list[memoryview] = []
        """What has arrived of a frame that is not complete."""
        self._missing_bytes = SIZE.size
        """Of that frame, or of its size."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what arrived, and give the frames that it completes.

        Raises:
            WireError: the size of a frame is not allowed.
        """
        view, at, end = memoryview(data), 0, len(data)
        while self._parts and at < end:
            part = view[at : at + self._missing_bytes]
            at += len(part)
            if self._completed(part):
                yield self._take()
        if self._parts:
            return
        while end - at >= SIZE.size:
            whole = self._whole_bytes(data, at)
            if end - at < whole:
                self._missing_bytes = whole - (end - at)
                break
            yield data[at : at + whole]
            at += whole
        else:
            self._missing_bytes = SIZE.size - (end - at)
        if at < end:
            self._parts.append(view[at:])

    def _completed(self, part: memoryview) -> bool:
        self._parts.append(part)
        self._missing_bytes -= len(part)
        have = sum(map(len, self._parts))
        if self._missing_bytes == 0 and have == SIZE.size:
            self._missing_bytes = self._whole_bytes(b"".join(self._parts), 0) - have
        return self._missing_bytes == 0

    def _take(self) -> bytes:
        frame = b"".join(self._parts)
        self._parts.clear()
        return frame

    def _whole_bytes(self, data: bytes, at: int) -> int:
        (size,) = SIZE.unpack_from(data, at)
        if not SIZE.size < size <= self.limit_bytes:
            raise WireError(f"frame of {size} bytes; allowed: 5 to {self.limit_bytes}")
        return int(SIZE.size + size)


def command_frame(command: Message) -> bytes:
    """A frame of a command alone."""
    body = encode_command(command)
    return TWO_SIZES.pack(len(body) + SIZE.size, len(body)) + body


def payload_frame(
    command: bytes, metadata: bytes, payload: Sequence[Buffer]
) -> list[Buffer]:
    """A frame of a command with metadata and a payload, in parts to be written.

    Args:
        command: encoded; with its metadata it is copied.
        metadata: encoded.
        payload: the parts of the payload; they are not copied, so may not change.
    """
    metadata_size = SIZE.pack(len(metadata))
    checksum: int = google_crc32c.value(metadata_size + metadata)
    payload_bytes = 0
    for part in payload:
        checksum = extend_checksum(checksum, part)
        payload_bytes += len(part) if type(part) is bytes else memoryview(part).nbytes
    head = b"".join(
        (
            TWO_SIZES.pack(
                SIZE.size + len(command) + CHECKED.size + len(metadata) + payload_bytes,
                len(command),
            ),
            command,
            CHECKED.pack(CHECKSUM_MAGIC, checksum, len(metadata)),
            metadata,
        )
    )
    return [head, *payload]


def extend_checksum(checksum: int, data: Buffer) -> int:
    """The CRC-32C of something and of `data` after it."""
    if type(data) is bytes:
        return int(google_crc32c.extend(checksum, data))
    view = memoryview(data).cast("B")
    for at in range(0, len(view), PIECE_BYTES):
        piece = bytes(view[at : at + PIECE_BYTES])
        checksum = google_crc32c.extend(checksum, piece)
    return checksum


class Rest(NamedTuple):
    """Where in a frame the parts of a MESSAGE are, after its command."""

    broker_metadata: tuple[int, int] | None
    metadata: tuple[int, int]
    payload_at: int
    intact: bool
    """The checksum is right, or there is none."""


def decode_frame(frame: bytes) -> tuple[Message | None, int]:
    """The command of a frame (None: unknown), and where the rest begins.

    Raises:
        WireError: the frame does not hold a command.
    """
    end = _sized(frame, SIZE.size)
    return decode_command(frame, TWO_SIZES.size, end), end


def decode_rest(frame: bytes, at: int) -> Rest:
    """Find the parts of a MESSAGE, and verify its checksum.

    Raises:
        WireError: sizes contradict the frame.
    """
    broker_metadata, intact = None, True
    magic = int.from_bytes(frame[at : at + 2], "big")
    if magic == BROKER_METADATA_MAGIC:
        end = _sized(frame, at + 2)
        broker_metadata = at + MAGIC_AND_SIZE.size, end
        at = end
        magic = int.from_bytes(frame[at : at + 2], "big")
    if magic == CHECKSUM_MAGIC:
        if len(frame) < at + MAGIC_AND_SIZE.size:
            raise WireError(f"a checksum at byte {at} of {len(frame)}")
        _, checksum = MAGIC_AND_SIZE.unpack_from(frame, at)
        at += MAGIC_AND_SIZE.size
        intact = checksum == extend_checksum(0, memoryview(frame)[at:])
    end = _sized(frame, at)
    return Rest(broker_metadata, (at + SIZE.size, end), end, intact)


def _sized(frame: bytes, at: int) -> int:
    """Where something ends that begins with its size at `at`."""
    allowed = len(frame) - at - SIZE.size
    if allowed < 0:
        raise WireError(f"a size at byte {at} of {len(frame)}")
    (size,) = SIZE.unpack_from(frame, at)
    if size > allowed:
        raise WireError(f"a part of {size} bytes; allowed: 0 to {allowed}")
    return int(at + SIZE.size + size)
