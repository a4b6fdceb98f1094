"""What is stored of batches: staged messages, decisions, and what reached its queues.

One record of the staged topic has what one request staged: its body is the request's,
the properties say for whom and where. A record of the topic of batches is JSON, one of
the structs here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from ropeway.gateway.node import record_builder
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.storage.api import RecordParts

MARK = "ROPEWAY_BATCH"
"""The property of a delivered message that says where in which batch it was: the offset
of the decision, a colon, and its place among the batch's messages in its queue."""

_PRODUCER = "STAGED_BY"
_OWNER = "STAGED_AS"
_TOPIC = properties.REAL_TOPIC
_QUEUE_ID = properties.REAL_QUEUE_ID


class Decided(Struct, frozen=True, tag="decided"):
    """A batch is committed: from here on its messages will be delivered."""

    producer_id: str
    batch_id: int
    store_ms: int
    staged: dict[str, list[int]]
    """Of all brokers, by name."""
    ends: dict[str, dict[int, int]]
    """Topic to queue id to where the queue ended before: nothing of it is earlier."""
    owner: str = ""
    """The principal that committed it; empty where access was not controlled."""


class Published(Struct, frozen=True, tag="published"):
    """All messages of a batch are in their queues."""

    decided_at: int
    """The offset of its decision."""


class Known(Struct, frozen=True, tag="known"):
    """Each producer's last batch, so that older records need not be read any more."""

    last: list[Decided]


Entry = Decided | Published | Known


class Staged(NamedTuple):
    """What one request staged."""

    producer_id: str
    owner: str
    """The principal that did; empty where access was not controlled."""
    topic: str
    queue_id: int
    original: message.Message
    """When and by whom; its body has the messages."""


def staged_record(
    topic: ServedTopic,
    store_ms: int,
    *,
    producer_id: str,
    owner: str,
    for_topic: str,
    for_queue_id: int,
    body: bytes,
    born_host: bytes,
    store_host: bytes,
) -> RecordParts:
    """Make the record of what a request stages, for the end of the staged topic."""
    pairs = {_PRODUCER: producer_id, _TOPIC: for_topic, _QUEUE_ID: str(for_queue_id)}
    if owner:
        pairs[_OWNER] = owner
    return record_builder.make_record(
        topic,
        0,
        topic.partitions[0].next_offset,
        store_ms,
        record_builder.NewMessage(
            body=body,
            properties=properties.dump(pairs),
            born_ms=store_ms,
            born_host=born_host,
            store_host=store_host,
        ),
    )


def read_staged(data: Buffer) -> Staged:
    """Read what a request staged.

    Raises:
        MessageError: It is nothing of the kind.
    """
    original = message.decode(data)
    pairs = properties.parse(original.properties)
    try:
        return Staged(
            pairs[_PRODUCER],
            pairs.get(_OWNER, ""),
            pairs[_TOPIC],
            int(pairs[_QUEUE_ID]),
            original,
        )
    except (KeyError, ValueError) as error:
        raise MessageError(f"no record of staged messages: {error}") from error


def entry_record(
    topic: ServedTopic, store_ms: int, entry: Entry, host: bytes
) -> RecordParts:
    """Make a record for the end of the topic of batches."""
    offset = topic.partitions[0].next_offset
    return record_builder.make_note(
        topic, offset, store_ms, host, msgspec.json.encode(entry)
    )


def read_entry(data: Buffer) -> tuple[int, Entry]:
    """Read a record of the topic of batches: its offset, and what it says.

    Raises:
        LogError: A newer program wrote it.
        MessageError: It is nothing of the kind.
    """
    stored = record_builder.read_note(data)
    try:
        return stored.queue_offset, msgspec.json.decode(stored.body, type=Entry)
    except msgspec.DecodeError as error:
        raise MessageError(f"no record of batches: {error}") from error


def mark(decided_at: int, index: int) -> str:
    """The property that a delivered message gets, in wire form."""
    return f"{mark_before(decided_at)}{index}{properties.VALUE_END}"


def mark_before(decided_at: int) -> str:
    """What stands of it before the place."""
    return f"{MARK}{properties.NAME_END}{decided_at}:"


def marked_index(data: Buffer, decided_at: int) -> int | None:
    """The place of a stored message in a batch; None where it is of no or another."""
    value = properties.parse(message.view_properties(data).decode()).get(MARK, "")
    batch, _, index = value.partition(":")
    return int(index) if batch == str(decided_at) and index.isdigit() else None
