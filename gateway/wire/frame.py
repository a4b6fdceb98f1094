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
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from ropeway.gateway.wire import rocketmq_header
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, Language
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.errors import FrameError, HeaderError
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Buffer = bytes | bytearray | memoryview

JSON = 0
ROCKETMQ = 1

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Largest frame read, as `com.rocketmq.remoting.frameMaxLength` has it by default."""

PREFIX = struct.Struct(">II")
"""L, and S with H, as above."""

_MIN_LENGTH = 4
_MAX_HEADER_BYTES = (1 << 24) - 1
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
        if parts:
            self.pending_bytes += len(data)
            if self.pending_bytes < self._needed:
                self._keep(data)
                self._holds(self.pending_bytes)
                return []
            parts.append(data)
            data = b"".join(parts)
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
        return frames

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


def decode_fields(raw: msgspec.Raw) -> dict[str, str]:
    """Read a command's own fields without knowing the command, values as text.

    Raises:
        HeaderError: They are not a flat object.
    """
    try:
        fields = msgspec.json.decode(
            raw, type=dict[str, str | int | float | bool | None] | None
        )
    except UNREADABLE as error:
        raise HeaderError(
            f"extFields are not names and values: {reason_of(error)}"
        ) from error
    return {
        key: field_text(value)
        for key, value in (fields or {}).items()
        if value is not None
    }


def field_text(value: str | float | bool) -> str:
    """A field's value as the text it has on the wire."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def begin_frame(header: bytes, body_bytes: int = 0) -> bytes:
    """A frame's bytes but for its body, from a header in JSON that is encoded already.

    Args:
        header: Shorter than its three length bytes can say.
        body_bytes: Length of the body that follows.
    """
    size = len(header)
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
        header = _encode_json_header(
            code, opaque, flag, fields, remark, language, version
        )
    if len(header) > _MAX_HEADER_BYTES:
        raise HeaderError(
            f"header of {len(header)} bytes; allowed: {_MAX_HEADER_BYTES}"
        )
    prefix = PREFIX.pack(
        4 + len(header) + len(body), serialize_type << 24 | len(header)
    )
    return b"".join((prefix, header, body))


def _encode_json_header(
    code: int,
    opaque: int,
    flag: int,
    fields: Mapping[str, str] | msgspec.Raw | None,
    remark: str | None,
    language: Language,
    version: int,
) -> bytes:
    # The order and the omissions of fastjson, for parsers that grew up with it.
    header: dict[str, object] = {"code": code}
    if fields is not None:
        header["extFields"] = fields
    header["flag"] = flag
    header["language"] = language.name
    header["opaque"] = opaque
    if remark is not None:
        header["remark"] = remark
    header["serializeTypeCurrentRPC"] = "JSON"
    header["version"] = version
    return _encode_json(header)
