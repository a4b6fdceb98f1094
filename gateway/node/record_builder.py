"""Storing: from a message's parts to a record in its queue's log."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from ropeway.common.clock import now_ms
from ropeway.common.versions import newer
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.send_codec import record_of
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.gateway.wire.message import Message
    from ropeway.storage.api import Partition, RecordParts

NOTE_FORMAT = 1
"""Of what a broker writes for itself: pops, batches, ends of transactions."""
_NOTE_FORMAT = "ROPEWAY_FORMAT"
_MOST_TIMES = (1 << 31) - 1
"""A sender may have said that a message came so often already."""


class NewMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message that has no place in a queue yet."""

    body: bytes
    """As it was sent."""
    properties: str
    """In wire form, with those that the broker adds."""
    born_ms: int
    """When the producer made it."""
    born_host: bytes
    """The producer's packed address."""
    store_host: bytes
    """This broker's packed address, as clients reach it."""
    flag: int = 0
    """The application's."""
    sys_flag: int = 0
    """What was sent; the bits of the hosts' lengths are set with the record."""
    reconsume_times: int = 0
    """How often a consumer has sent it back."""


def make_record(
    topic: ServedTopic, queue_id: int, offset: int, store_ms: int, new: NewMessage
) -> RecordParts:
    """Make the record that goes to an offset of a queue.

    Args:
        topic: Where it goes.
        queue_id: Which queue of it.
        offset: The queue offset it will have.
        store_ms: Now.
        new: The message.

    Raises:
        MessageError: The properties are too long.
    """
    made = record_of(
        topic.magic,
        topic.name_field,
        queue_id,
        new.sys_flag,
        new.born_ms,
        new.born_host,
        store_ms,
        new.store_host,
        new.reconsume_times,
        "",
        offset,
        topic.id_bases[queue_id] | offset,
        new.flag,
        new.body,
        new.properties,
        False,
    )
    if made is None:
        raise MessageError(
            f"properties of {len(new.properties.encode())} bytes with the broker's "
            f"own; allowed: {message.MAX_PROPERTIES_BYTES}"
        )
    return made


def make_note(
    topic: ServedTopic,
    offset: int,
    store_ms: int,
    host: bytes,
    body: bytes,
    pairs: Mapping[str, str] = MappingProxyType({}),
) -> RecordParts:
    """Make a record that a broker writes for itself, in queue 0 of a system topic.

    Args:
        topic: Where it goes.
        offset: The queue offset it will have.
        store_ms: Now.
        host: This broker's packed address.
        body: What it says.
        pairs: Its properties.
    """
    return make_record(
        topic,
        0,
        offset,
        store_ms,
        NewMessage(
            body=body,
            properties=properties.dump({**pairs, _NOTE_FORMAT: str(NOTE_FORMAT)}),
            born_ms=store_ms,
            born_host=host,
            store_host=host,
        ),
    )


def read_note(data: Buffer) -> Message:
    """Read a record that a broker wrote for itself; without a format it is of 1.

    Raises:
        LogError: A newer program wrote it.
        MessageError: It is no stored message.
    """
    stored = message.decode(data)
    found = properties.parse(stored.properties).get(_NOTE_FORMAT, "1")
    if found != str(NOTE_FORMAT):
        where = f"offset {stored.queue_offset} of {stored.topic}"
        raise LogError(newer(where, found, NOTE_FORMAT))
    return stored


def appended(
    partition: Partition, made: Sequence[RecordParts], store_ms: int
) -> asyncio.Future[int]:
    """Begin to append records; the result is their offset, when they are durable.

    Raises:
        LogError: As in `Partition.append`, or what its `done` was told.
    """
    stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def done(offset: int, error: LogError | None) -> None:
        if stored.cancelled():
            return
        if error is None:
            stored.set_result(offset)
        else:
            stored.set_exception(error)

    partition.append(made, store_ms, done)
    return stored


def store_again(
    topic: ServedTopic,
    queue_id: int,
    original: Message,
    pairs: Mapping[str, str],
    reconsume_times: int,
) -> asyncio.Future[int]:
    """Append a message that was stored before, to another queue; as `appended`.

    Args:
        topic: Where it goes.
        queue_id: Which queue of it.
        original: What was stored.
        pairs: Its properties from now on.
        reconsume_times: How often a consumer has sent it back.

    Raises:
        MessageError: The properties are too long.
        LogError: As in `appended`.
    """
    partition = topic.partitions[queue_id]
    store_ms = now_ms()
    record = make_record(
        topic,
        queue_id,
        partition.next_offset,
        store_ms,
        NewMessage(
            body=original.body,
            properties=properties.dump(pairs),
            flag=original.flag,
            sys_flag=original.sys_flag,
            born_ms=original.born_ms,
            born_host=message.pack_host(*original.born_host),
            store_host=message.pack_host(*original.store_host),
            reconsume_times=min(reconsume_times, _MOST_TIMES),
        ),
    )
    return appended(partition, [record], store_ms)
