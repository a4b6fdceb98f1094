"""Storing: from a message's parts to a record in its queue's log."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.send_codec import record_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.message import Message
    from ropeway.storage.api import Done, RecordParts


def make_record(
    topic: ServedTopic,
    queue_id: int,
    offset: int,
    store_ms: int,
    *,
    body: bytes,
    text: str,
    flag: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    store_host: bytes,
    reconsume_times: int,
) -> RecordParts:
    """Make the record that goes to an offset of a queue.

    Args:
        topic: Where it goes.
        queue_id: Which queue of it.
        offset: The queue offset it will have.
        store_ms: Now.
        body: As it was sent.
        text: The properties in wire form.
        flag: The application's flag.
        sys_flag: What was sent; the bits of the hosts' lengths are set here.
        born_ms: When the producer made it.
        born_host: The producer's packed address.
        store_host: This broker's packed address, as clients reach it.
        reconsume_times: How often a consumer has sent it back.

    Raises:
        MessageError: The properties are too long.
    """
    made = record_of(
        topic.magic,
        topic.name_field,
        queue_id,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        "",
        offset,
        topic.id_bases[queue_id] | offset,
        flag,
        body,
        text,
        False,
    )
    if made is None:
        raise MessageError(
            f"properties of {len(text.encode())} bytes with the broker's own; "
            f"allowed: {message.MAX_PROPERTIES_BYTES}"
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
        body=body,
        text=properties.dump(pairs),
        flag=0,
        sys_flag=0,
        born_ms=store_ms,
        born_host=host,
        store_host=host,
        reconsume_times=0,
    )


def store_again(
    topic: ServedTopic,
    queue_id: int,
    original: Message,
    pairs: Mapping[str, str],
    reconsume_times: int,
    done: Done,
) -> None:
    """Append a message that was stored before, to another queue.

    Args:
        topic: Where it goes.
        queue_id: Which queue of it.
        original: What was stored.
        pairs: Its properties from now on.
        reconsume_times: How often a consumer has sent it back.
        done: As in `Partition.append`.

    Raises:
        MessageError: The properties are too long.
        LogError: As in `Partition.append`.
    """
    partition = topic.partitions[queue_id]
    store_ms = now_ms()
    record = make_record(
        topic,
        queue_id,
        partition.next_offset,
        store_ms,
        body=original.body,
        text=properties.dump(pairs),
        flag=original.flag,
        sys_flag=original.sys_flag,
        born_ms=original.born_ms,
        born_host=message.pack_host(*original.born_host),
        store_host=message.pack_host(*original.store_host),
        reconsume_times=reconsume_times,
    )
    partition.append([record], store_ms, done)
