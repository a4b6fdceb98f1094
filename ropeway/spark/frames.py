"""Stored messages as columns without an object for any of them.

Only where each message begins is looked for one by one. All else is read from the
pulled bytes by columns, and bodies and properties stay where they are until Arrow
copies them into one array.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ropeway.client.columns import decompressed
from ropeway.client.errors import BadResponseError
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ropeway.gateway.wire.frame import Buffer

    Numbers = NDArray[np.int64]

_SIZE = struct.Struct(">i")
_LEAST_BYTES = 91
"""What stands before the body, its topic of one byte, the lengths of both, and of the
properties."""

# Where fields stand in a message, and behind which they do: hosts have 8 or 20 bytes.
_MAGIC_AT, _OFFSET_AT, _SYS_FLAG_AT, _BORN_MS_AT, _BORN_HOST_AT = 4, 20, 36, 40, 48
_STORE_MS_BYTES = 8
_BEFORE_LENGTH_BYTES = 12
"""Times of redelivery, and the offset of a prepared transaction."""
_V4, _V6 = 8, 20


class Frames(NamedTuple):
    """Messages of one queue in the order of their offsets, an array for each field."""

    offsets: Numbers
    store_ms: Numbers
    born_ms: Numbers
    bodies: pa.BinaryArray
    """Decompressed, where this client can."""
    properties: pa.BinaryArray
    """In wire form: see `gateway.wire.properties`."""


def read_frames(data: Buffer, begin: int, end: int) -> Frames:
    """Read a pull's body.

    Args:
        data: Stored messages one behind the other.
        begin: The first offset that is wanted.
        end: One past the last one.

    Raises:
        BadResponseError: The bytes are not stored messages.
    """
    try:
        return _read(data, begin, end)
    except (struct.error, MessageError) as error:
        raise BadResponseError(f"what a pull gave is no messages: {error}") from error


def _read(data: Buffer, begin: int, end: int) -> Frames:
    starts = _starts(data)
    after = np.append(starts[1:], len(data)) if len(starts) else starts
    offsets = _numbers(data, ">i8", starts + _OFFSET_AT)
    wanted = (offsets >= begin) & (offsets < end)
    if not wanted.all():
        starts, after, offsets = starts[wanted], after[wanted], offsets[wanted]
    flags = _numbers(data, ">i4", starts + _SYS_FLAG_AT)
    store_ms_at = (
        starts + _BORN_HOST_AT + np.where(flags & stored.BORN_HOST_V6_FLAG, _V6, _V4)
    )
    store_host_at = store_ms_at + _STORE_MS_BYTES
    length_at = (
        store_host_at
        + np.where(flags & stored.STORE_HOST_V6_FLAG, _V6, _V4)
        + _BEFORE_LENGTH_BYTES
    )
    body_at = length_at + _SIZE.size
    _require(body_at <= after)
    body_end = body_at + _numbers(data, ">i4", length_at)
    _require((body_end >= body_at) & (body_end + 3 <= after))
    magic = _numbers(data, ">i4", starts + _MAGIC_AT)
    is_v2 = magic == stored.MAGIC_V2
    _require(is_v2 | (magic == stored.MAGIC_V1))
    properties_at = (
        body_end
        + 3
        + np.where(
            is_v2,
            1 + _numbers(data, ">i2", body_end),
            _numbers(data, "u1", body_end),
        )
    )
    _require((properties_at >= body_end) & (properties_at <= after))
    return Frames(
        offsets=offsets,
        store_ms=_numbers(data, ">i8", store_ms_at),
        born_ms=_numbers(data, ">i8", starts + _BORN_MS_AT),
        bodies=_decompressed(slices(data, body_at, body_end), flags),
        properties=slices(data, properties_at, after),
    )


def _starts(data: Buffer) -> Numbers:
    starts = []
    at, total = 0, len(data)
    size_at = _SIZE.unpack_from
    while at < total:
        (size,) = size_at(data, at)
        if size < _LEAST_BYTES or at + size > total:
            raise MessageError(
                f"message of {size} bytes, of {total - at} that are left"
            )
        starts.append(at)
        at += size
    return np.array(starts, np.int64)


def _numbers(data: Buffer, kind: str, at: Numbers) -> Numbers:
    """The numbers of a kind that stand at some places."""
    size = np.dtype(kind).itemsize
    # Every place of the data is the beginning of a number here.
    every: Any = np.ndarray(
        (max(0, len(data) - size + 1),), kind, buffer=data, strides=(1,)
    )
    found: Numbers = every[at].astype(np.int64)
    return found


def slices(data: Buffer, begins: Numbers, ends: Numbers) -> pa.BinaryArray:
    """What stands between pairs of places."""
    places = np.empty(2 * len(begins), np.int32)
    places[0::2] = begins
    places[1::2] = ends
    buffers = [None, pa.py_buffer(places), pa.py_buffer(data)]
    # Every second one is what stands between one pair and the next.
    every = pa.Array.from_buffers(pa.binary(), max(0, len(places) - 1), buffers)
    return every.take(pa.array(np.arange(0, len(places), 2)))


def _decompressed(bodies: pa.BinaryArray, flags: Numbers) -> pa.BinaryArray:
    if not (flags & stored.COMPRESSED_FLAG).any():
        return bodies
    made = [
        decompressed(body, flag) if flag & stored.COMPRESSED_FLAG else body
        for body, flag in zip(bodies.to_pylist(), flags.tolist(), strict=True)
    ]
    return pa.array(made, pa.binary())


def _require(is_met: NDArray[np.bool_]) -> None:
    if not is_met.all():
        raise MessageError(f"message {int(np.argmin(is_met))} of the pull is malformed")
