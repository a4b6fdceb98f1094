"""A half message as it is read: what it says, and when its producer is to be asked."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node.delays import DELAYING
from ropeway.gateway.node.fold import chunks_from, records_in
from ropeway.gateway.wire import message, properties, record_rewrite
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ropeway.gateway.wire.frame import Buffer
    from ropeway.gateway.wire.message import Message
    from ropeway.storage.api import Partition

_SECOND_MS = 1000
_MAX_DIGITS = 18


class Half(msgspec.Struct, frozen=True, gc=False):
    """A half message, with what is needed of its properties at hand."""

    data: bytes
    """As it is stored."""
    text: bytes
    """Its properties, in wire form."""
    offset: int
    """Where it is."""
    store_ms: int
    origin: int
    """Its transaction: where its first copy was."""
    topic: str
    """Where it is for."""
    queue_id: int
    """Which queue of it."""
    group: str
    """Its producer group."""
    unique_key: str
    """The id of its transaction, as clients know it."""
    checks: int = 0
    """How often its producer was asked."""
    immunity_ms: int | None = None
    """How long after its birth its producer wants not to be asked."""
    is_delayed: bool = False
    """Whether it is to wait when it is committed."""

    @property
    def message(self) -> Message:
        """All of it."""
        return message.decode(self.data)

    @property
    def pairs(self) -> dict[str, str]:
        """Its properties."""
        return properties.parse(self.text.decode())

    def due_ms(self, timeout_ms: int, interval_ms: int) -> int:
        """When its producer is to be asked (again)."""
        if self.checks:
            return self.store_ms + interval_ms
        if self.immunity_ms is not None:
            return self.message.born_ms + self.immunity_ms
        return self.store_ms + timeout_ms


def read(record: Buffer) -> Half:
    """Read a half message.

    Raises:
        MessageError: It is none.
    """
    data = bytes(record)
    try:
        parts = record_rewrite.parts_of(data)
        text = data[parts.properties_at :]
        pairs = properties.parse(text.decode())
    except (struct.error, IndexError, ValueError) as error:
        raise MessageError(f"not a half message: {error}") from error
    return of_pairs(pairs, data, text, parts.queue_offset, parts.store_ms)


def of_pairs(
    pairs: Mapping[str, str], data: bytes, text: bytes, offset: int, store_ms: int
) -> Half:
    """Make a half message of what is known of it.

    Args:
        pairs: Its properties.
        data: As it is stored.
        text: Its properties, in wire form.
        offset: Where it is.
        store_ms: When it was stored, in milliseconds since 1970.
    """
    immunity_s = _number(pairs, properties.CHECK_IMMUNITY_TIME, -1)
    return Half(
        data,
        text,
        offset,
        store_ms,
        _number(pairs, properties.TRANSACTION_PREPARED_QUEUE_OFFSET, offset),
        pairs.get(properties.REAL_TOPIC, ""),
        _number(pairs, properties.REAL_QUEUE_ID, 0),
        pairs.get(properties.PRODUCER_GROUP, ""),
        pairs.get(properties.UNIQ_KEY, ""),
        _number(pairs, properties.TRANSACTION_CHECK_TIMES, 0),
        immunity_s * _SECOND_MS if immunity_s >= 0 else None,
        not DELAYING.isdisjoint(pairs),
    )


def _number(pairs: Mapping[str, str], name: str, otherwise: int) -> int:
    text = pairs.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else otherwise


async def read_range(
    partition: Partition, offset: int, end: int
) -> AsyncIterator[Half]:
    """Read the half messages from an offset up to another.

    Raises:
        LogError: They cannot be read.
        MessageError: One is none.
    """
    async for chunk in chunks_from(partition, offset, end):
        for record in records_in(chunk):
            yield read(record)
