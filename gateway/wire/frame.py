"""Frames: how commands lie in the byte stream, in both header encodings.

     0        4        8                 8+H
     +--------+--------+-----------------+---------+   L = 4 + H + body length
     | L      | S | H  | header, H bytes | body    |   S = 1 byte: 0 JSON, 1 ROCKETMQ
     +--------+--------+-----------------+---------+   H = 3 bytes; big endian

JSON headers are read here, ROCKETMQ ones in `rocketmq_header`. A real broker answers in
JSON whatever the request's encoding, and so do we.

Source: RemotingCommand.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import fields as fields_of

from ropeway.gateway.wire import rocketmq_header
from ropeway.gateway.wire.codes import RESPONSE_FLAG, ROPEWAY_VERSION, Language
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.errors import FrameError, HeaderError
from ropeway.gateway.wire.other_protocols import spoken
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Buffer = bytes | bytearray | memoryview

JSON = 0
ROCKETMQ = 1

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Largest frame read, as `com.rocketmq.remoting.frameMaxLength` has it by default."""

PREFIX = struct.Struct(">II")
"""L, and S with H, as above."""

_MIN_LENGTH = 4
_MAX_HEADER_BYTES = (1 << 24) - 1
LARGE_BYTES = 256 * 1024
"""A frame of so much needs more than one of the largest reads. It is copied once, which
for a smaller one takes longer than to copy it twice."""
_PART_BYTES = 16 * 1024
"""Parts of a frame that are smaller are put together: a buffer that is small when it
grows is moved at little cost, and with the largest read, 256 KiB, grows once."""

I32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
I64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class RawFrame(NamedTuple):
    """A whole frame cut from the stream, its header not yet looked at."""

    serialize_type: int
    header: bytes
    body: bytes


class Envelope(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What every command carries, its own fields still encoded."""

    code: I32
    opaque: I32 = 0
    flag: I32 = 0
    version: I32 = 0
    language: str | int = "OTHER"
    remark: str | None = None
    ext_fields: msgspec.Raw = msgspec.Raw(b"{}")


class _Command(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    # The order and the omissions of fastjson, for parsers that grew up with it.
    code: int
    ext_fields: Mapping[str, str] | msgspec.Raw | None = None
    flag: int
    language: str
    opaque: int
    remark: str | None = None
    serialize_type: str = msgspec.field(name="serializeTypeCurrentRPC")
    version: int


_decode_json = msgspec.json.Decoder(Envelope, strict=False).decode
_encode_json = msgspec.json.Encoder().encode


@may_be_compiled
def cut(
    data: bytes, max_frame_bytes: int, max_header_bytes: int, kind: type[RawFrame], /
) -> tuple[list[RawFrame], int, int]:
    """Cut whole frames from the beginning of bytes.

    Args:
        data: What came.
        max_frame_bytes: Longest frame that is accepted, length prefix not counted.
        max_header_bytes: Longest header that is accepted.
        kind: `RawFrame`.

    Returns:
        The frames, where the rest begins, and how many bytes the rest needs to become a
        frame or to tell its length; -1 where that length is impossible.
    """
    frames: list[RawFrame] = []
    position = 0
    size = len(data)
    prefix = PREFIX.size
    while size - position >= prefix:
        length, word = PREFIX.unpack_from(data, position)
        header_bytes = word & _MAX_HEADER_BYTES
        if (
            not _MIN_LENGTH + header_bytes <= length <= max_frame_bytes
            or header_bytes > max_header_bytes
        ):
            return frames, position, -1
        end = position + 4 + length
        if end > size:
            return frames, position, 4 + length
        start = position + prefix
        body = start + header_bytes
        frames.append(kind(word >> 24, data[start:body], data[body:end]))
        position = end
    return frames, position, prefix


class FrameReader:
    """Cuts frames from a stream, wherever the network has cut it.

    After an error it must not be fed again.

    Args:
        max_frame_bytes: Longest frame that is accepted, length prefix not counted.
        max_header_bytes: Longest header that is accepted.
    """

    __slots__ = (
        "_needed",
        "_parts",
        "max_frame_bytes",
        "max_header_bytes",
        "pending_bytes",
    )

    def __init__(
        self,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        max_header_bytes: int = _MAX_HEADER_BYTES,
    ) -> None:
        self._parts: list[bytes | bytearray] = []
        """Of a frame that is not whole, as they came; see `_keep`."""
        self._needed = PREFIX.size
        self.pending_bytes = 0
        """Bytes of a frame that is not whole yet."""
        self.max_frame_bytes = max_frame_bytes
        self.max_header_bytes = max_header_bytes

    @property
    def missing_bytes(self) -> int:
        """What is to come of a frame that is not whole yet; 0 where there is none."""
        return self._needed - self.pending_bytes if self.pending_bytes else 0

    @property
    def is_large(self) -> bool:
        """Whether that frame is long."""
        return self.pending_bytes > 0 and self._needed >= LARGE_BYTES

    def clear(self) -> None:
        """Forget what is not whole."""
        self._parts = []
        self.pending_bytes = 0

    def feed(self, data: bytes) -> list[RawFrame]:
        """Take bytes in and give back every frame that is now whole.

        Raises:
            FrameError: A length is impossible. Frames before it are lost to the
                caller, which has to close the connection anyway.
        """
        parts = self._parts
        first: RawFrame | None = None
        if parts:
            self.pending_bytes += len(data)
            if self.pending_bytes < self._needed:
                self._keep(data)
                self._holds(self.pending_bytes)
                return []
            parts.append(data)
            if self._needed < LARGE_BYTES:
                data = b"".join(parts)
            else:
                first, data = self._take_large()
            parts.clear()
            self.pending_bytes = 0
            self._holds(0)
        frames, position, needed = cut(
            data, self.max_frame_bytes, self.max_header_bytes, RawFrame
        )
        if needed < 0:
            length, word = PREFIX.unpack_from(data, position)
            raise FrameError(self._complaint(length, word & _MAX_HEADER_BYTES))
        if position < len(data):
            rest = data[position:]
            parts.append(rest)
            self._needed = needed
            self.pending_bytes = len(rest)
            self._holds(len(rest))
        if first is not None:
            frames.insert(0, first)
        return frames

    def _take_large(self) -> tuple[RawFrame, bytes]:
        """Return the frame whose parts are there, and what follows it."""
        word = PREFIX.unpack_from(self._parts[0])[1]
        body = PREFIX.size + (word & _MAX_HEADER_BYTES)
        frame = RawFrame(
            word >> 24,
            self._between(PREFIX.size, body),
            self._between(body, self._needed),
        )
        return frame, self._between(self._needed, self.pending_bytes)

    def _between(self, start: int, end: int) -> bytes:
        """Copy what stands from one place of the parts to another."""
        found, at = [], 0
        for part in self._parts:
            found.append(memoryview(part)[max(start - at, 0) : max(end - at, 0)])
            at += len(part)
        return b"".join(found)

    def _keep(self, data: bytes) -> None:
        """Keep more of a frame that is not whole.

        One buffer that grows would be moved again and again, and leave holes in the
        memory that are larger than what is kept. Parts of a byte each would take forty
        times the memory that the frame's length allows, so small ones are put together.
        """
        parts = self._parts
        last = parts[-1]
        if len(last) >= _PART_BYTES:
            parts.append(data)
        else:
            if isinstance(last, bytes):
                last = parts[-1] = bytearray(last)
            last += data

    def _holds(self, size: int) -> None:
        """So many bytes of a frame that is not whole are kept now."""

    def _complaint(self, length: int, header_bytes: int) -> str:
        if not _MIN_LENGTH <= length <= self.max_frame_bytes:
            if (other := spoken(length)) is not None:
                return f"no frame of RocketMQ's protocol: the other side speaks {other}"
            return (
                f"frame of {length} bytes; "
                f"allowed: {_MIN_LENGTH} to {self.max_frame_bytes}"
            )
        if header_bytes > self.max_header_bytes:
            return f"header of {header_bytes} bytes; allowed: {self.max_header_bytes}"
        return f"header of {header_bytes} bytes in a frame of {length}"


def decode_envelope(serialize_type: int, header: bytes) -> Envelope:
    """Read what every command carries.

    Raises:
        FrameError: The header is not one; without its opaque nobody can be answered.
    """
    if serialize_type == JSON:
        try:
            return _decode_json(header)
        except UNREADABLE as error:
            raise FrameError(f"header is not a command: {reason_of(error)}") from error
    if serialize_type == ROCKETMQ:
        return _decode_rocketmq(header)
    raise FrameError(f"header encoding {serialize_type}; allowed: 0 JSON, 1 ROCKETMQ")


def _decode_rocketmq(header: bytes) -> Envelope:
    fixed, remark, fields = rocketmq_header.decode(header)
    return Envelope(
        code=fixed.code,
        opaque=fixed.opaque,
        flag=fixed.flag,
        version=fixed.version,
        language=fixed.language,
        remark=remark or None,
        ext_fields=msgspec.Raw(_encode_json(fields)),
    )


class HasRecords(Protocol):
    """An answer, as its template knows it."""

    header: Any
    records: Sequence[Buffer]


class Template:
    """Makes frequent answers' frames, but for the records: what `encode_frame` would.

    Args:
        header: The class of the answers' headers; None: they have no fields.
        names: Its fields in their order, numbers or text that JSON takes as it is.
        remark: Likewise.
    """

    __slots__ = ("_text", "_values")

    def __init__(
        self,
        header: type[msgspec.Struct] | None = None,
        names: Sequence[str] = (),
        remark: str | None = None,
    ) -> None:
        declared = fields_of(header) if header else ()
        labels = {one.name: one.encode_name for one in declared}
        fields = {labels[name]: "%s" for name in names}
        frame = encode_frame(
            0, 0, flag=RESPONSE_FLAG, fields=fields or None, remark=remark
        )
        header_text = frame[PREFIX.size :].decode()
        self._text = header_text.replace('"opaque":0', '"opaque":%s')
        self._values = attrgetter(*names) if names else None

    def __call__(self, answer: HasRecords, opaque: int) -> bytes:
        """Make the frame of an answer to a request's opaque, but for its records."""
        values = self._values
        given = (opaque,) if values is None else (*values(answer.header), opaque)
        header = (self._text % given).encode()
        size = len(header)
        body_bytes = sum(map(len, answer.records))
        return PREFIX.pack(size + 4 + body_bytes, size) + header


def encode_frame(
    code: int,
    opaque: int,
    *,
    flag: int = 0,
    fields: Mapping[str, str] | msgspec.Raw | None = None,
    body: Buffer = b"",
    remark: str | None = None,
    language: Language = Language.JAVA,
    version: int = ROPEWAY_VERSION,
    serialize_type: int = JSON,
) -> bytes:
    """Make the bytes of one frame.

    Args:
        code: Request or response code.
        opaque: The number that ties an answer to its request.
        flag: Sum of `RESPONSE_FLAG` and `ONE_WAY_FLAG`.
        fields: The command's own fields, values as text; or as they came in JSON.
        body: What follows the header.
        remark: A sentence for people.
        language: Who speaks. An answer says JAVA, as there are clients that know
            no other broker.
        version: MQVersion's number.
        serialize_type: `JSON` or `ROCKETMQ`.

    Raises:
        HeaderError: The header is too long for its three length bytes.
    """
    if serialize_type == ROCKETMQ:
        assert not isinstance(fields, msgspec.Raw), "JSON goes into JSON"
        fixed = rocketmq_header.Fixed(code, language, version, opaque, flag)
        header = rocketmq_header.encode(fixed, remark or "", fields or {})
    else:
        header = _encode_json(
            _Command(
                code=code,
                ext_fields=fields,
                flag=flag,
                language=language.name,
                opaque=opaque,
                remark=remark,
                serialize_type="JSON",
                version=version,
            )
        )
    if len(header) > _MAX_HEADER_BYTES:
        raise HeaderError(
            f"header of {len(header)} bytes; allowed: {_MAX_HEADER_BYTES}"
        )
    prefix = PREFIX.pack(
        4 + len(header) + len(body), serialize_type << 24 | len(header)
    )
    return b"".join((prefix, header, body))
