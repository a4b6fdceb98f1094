"""How transactions ended: records in a topic of their own, written and read.

A record names the transactions that ended the same way, by their origins, and the end
of the half topic at that time. Those ends only grow, and a half message or a copy of it
is never appended once its transaction has ended. So for the half messages from an
offset on, the records count whose end is above it, and a bisection finds the first.

Source: TransactionalMessageServiceImpl.getOpMessage, RocketMQ 5.3.4, whose records have
the same body and tag.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node import record_builder
from ropeway.gateway.node.fold import chunks_from, records_in
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.storage.api import Partition, RecordParts

_TAG = "d"
_SEPARATOR = ","
_HOW = "END"
_HALF_END = "HALF_END"


class End(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    GIVEN_UP = "given up"

    # There is one of each, and Enum's own hash is a call of Python code.
    __hash__ = object.__hash__


class Ended(NamedTuple):
    """Transactions that ended the same way."""

    how: End
    origins: tuple[int, ...]
    half_end: int
    """Where the half topic ended then, what was on its way included."""


def record(
    ended: Ended, topic: ServedTopic, offset: int, store_ms: int, host: bytes
) -> RecordParts:
    """Make a record of ended transactions.

    Args:
        ended: What it says.
        topic: The topic of ends.
        offset: The offset it will have.
        store_ms: Now.
        host: This broker's packed address.
    """
    pairs = {
        properties.TAGS: _TAG,
        _HOW: ended.how.name,
        _HALF_END: str(ended.half_end),
    }
    body = "".join(f"{origin}{_SEPARATOR}" for origin in ended.origins).encode()
    return record_builder.make_note(topic, offset, store_ms, host, body, pairs)


def parse(data: Buffer) -> Ended:
    """Read a record.

    Raises:
        LogError: A newer program wrote it.
        MessageError: It is none.
    """
    stored = record_builder.read_note(data)
    pairs = properties.parse(stored.properties)
    try:
        origins = stored.body.decode().split(_SEPARATOR)[:-1]
        return Ended(End[pairs[_HOW]], tuple(map(int, origins)), int(pairs[_HALF_END]))
    except (KeyError, ValueError) as error:
        raise MessageError(f"no record of ended transactions: {error}") from error


async def read_from(partition: Partition, half_offset: int) -> AsyncIterator[Ended]:
    """All records that may concern half messages from an offset on.

    Raises:
        LogError: They cannot be read.
        MessageError: One is no record.
    """
    offset = await _first_above(partition, half_offset)
    async for chunk in chunks_from(partition, offset):
        for one in records_in(chunk):
            yield parse(one)


async def _first_above(partition: Partition, half_offset: int) -> int:
    low, high = partition.first, partition.end
    while low < high:
        middle = (low + high) // 2
        chunk = await partition.read(middle, 1, 1)
        (one,) = records_in(chunk)
        if parse(one).half_end > half_offset:
            high = middle
        else:
            low = middle + 1
    return low
