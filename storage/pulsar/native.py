"""Entries of topics that native clients write to, too: read as packs. No I/O here.

Nothing packed is stored there: a pack is what one entry is made into when it is read,
so that all that reads packs reads these topics, too. The offsets come from the entry's
index (PIP-70), which counts every message that any producer has sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.api import Record
from ropeway.storage.native import NativeMessage, NativePosition
from ropeway.storage.pulsar.commands import KeyValue
from ropeway.storage.pulsar.entry import properties_of
from ropeway.storage.pulsar.errors import EntryError, WireError
from ropeway.storage.pulsar.frames import SIZE
from ropeway.storage.pulsar.pack import encode
from ropeway.storage.pulsar.protobuf import LENGTH, VARINT, key, varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.native import Converter
    from ropeway.storage.pulsar.entry import BatchedMetadata, Entry, Metadata
    from ropeway.storage.pulsar.frames import Buffer

SETTINGS = (
    "set brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept."
    "AppendIndexMetadataInterceptor and "
    "exposingBrokerEntryMetadataToClientEnabled=true in broker.conf"
)
"""What brokers need, so that entries tell their index."""

_TAKEN_OUT = Record(b"", 0, ())
"""Stands for a message that compaction took out of a batch; no reader gets it."""

UNREADABLE = "PULSAR_UNREADABLE"
"""The property that says why there is no body."""

MOST_UNREADABLE = 16_384
"""An entry that says more messages, and cannot be read, is the last of them alone."""

# Keys of the fields of SingleMessageMetadata; entry.BatchedMetadata reads them.
_PROPERTIES = key(1, LENGTH)
_PARTITION_KEY = key(2, LENGTH)
_PAYLOAD_SIZE = key(3, VARINT)
_EVENT_TIME = key(5, VARINT)


def base_offset(entry: Entry) -> int:
    """The offset of an entry's first message.

    Raises:
        EntryError: The broker does not tell.
    """
    if entry.index is None:
        raise EntryError(f"the entry at {entry.position} without an index; {SETTINGS}")
    return entry.index + 1 - entry.num_messages


def to_pack(converter: Converter, topic: str, number: int, entry: Entry) -> bytes:
    """The pack that an entry of a partition is read as.

    An entry that cannot be read is messages without bodies that say why: so queues go
    on behind it, and offsets have no gap, unless it says that it is very many messages.

    Raises:
        EntryError: It has no index.
    """
    base = base_offset(entry)
    try:
        messages = [
            None if one is None else _message(*one, entry.publish_ms)
            for one in entry.places()
        ]
    except (EntryError, WireError) as error:
        unreadable = NativeMessage(
            b"", {UNREADABLE: str(error)}, event_ms=entry.publish_ms
        )
        count = entry.num_messages
        if count > MOST_UNREADABLE:
            # Its producer says what it wants; the broker has counted that many.
            base, count = base + count - 1, 1
        messages = [unreadable for _ in range(count)]
    stored_ms = entry.broker_ms or entry.publish_ms
    ledger, entry_id = entry.position
    unique = f"{ledger:012X}{entry_id:012X}"
    records = [
        _TAKEN_OUT
        if message is None
        else converter.record(
            message,
            NativePosition(
                topic, number, base + step, stored_ms, f"{unique}{step:08X}"
            ),
        )
        for step, message in enumerate(messages)
    ]
    return encode([(records, stored_ms, None, 0)], base)


def _message(
    metadata: Metadata | BatchedMetadata, payload: memoryview, publish_ms: int
) -> NativeMessage:
    return NativeMessage(
        payload,
        properties_of(metadata),
        metadata.partition_key,
        metadata.event_ms or publish_ms,
    )


class Outgoing(NamedTuple):
    """What one entry is made of, as `Producer.send` takes it."""

    payload: Sequence[Buffer]
    properties: Sequence[tuple[str, str]]
    key: str | None
    event_ms: int
    batch: int | None


def outgoing(messages: Sequence[NativeMessage]) -> Outgoing:
    """One entry of all messages: a message alone, or a batch of Pulsar's own.

    A batch is for its first message's key, as those of Pulsar's own producers.
    """
    first = messages[0]
    if len(messages) == 1:
        properties = list(first.properties.items())
        return Outgoing([first.body], properties, first.key, first.event_ms, None)
    payload: list[Buffer] = []
    for message in messages:
        metadata = _batched(message)
        payload += SIZE.pack(len(metadata)), metadata, message.body
    return Outgoing(payload, (), first.key, first.event_ms, len(messages))


def _batched(message: NativeMessage) -> bytes:
    """What a batch says of one of its messages."""
    parts: list[bytes] = []
    for name, value in message.properties.items():
        parts += _PROPERTIES, _sized(KeyValue(name, value).encode())
    if message.key is not None:
        parts += _PARTITION_KEY, _sized(message.key.encode())
    # Clients refuse metadata without a size, also where that is 0.
    parts += _PAYLOAD_SIZE, varint(len(message.body))
    if message.event_ms:
        parts += _EVENT_TIME, varint(message.event_ms)
    return b"".join(parts)


def _sized(data: bytes) -> bytes:
    return varint(len(data)) + data
