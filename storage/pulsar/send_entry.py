"""How entries go out: their metadata, and the place where their producer is open."""

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ropeway.storage.pulsar.commands import (
    NUMBERS,
    CloseProducer,
    KeyValue,
    Send,
    SendError,
    SendReceipt,
    Success,
)
from ropeway.storage.pulsar.connection import Connection
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.errors import PulsarError, server_error
from ropeway.storage.pulsar.frames import Buffer, payload_frame
from ropeway.storage.pulsar.protobuf import LENGTH, VARINT, key, varint

CLOSE_TIMEOUT_S = 5

# Keys of the fields of MessageMetadata; entry.Metadata reads them.
PRODUCER_NAME = key(1, LENGTH)
SEQUENCE_ID = key(2, VARINT)
PUBLISH_TIME = key(3, VARINT)
PROPERTIES = key(4, LENGTH)
PARTITION_KEY = key(6, LENGTH)
NUM_MESSAGES_IN_BATCH = key(11, VARINT)
EVENT_TIME = key(12, VARINT)

# What a SEND begins with, and the keys of its fields; commands.Send is the same.
SEND_HEAD = key(1, VARINT) + varint(NUMBERS[Send]) + key(NUMBERS[Send], LENGTH)
SEND_PRODUCER = key(1, VARINT)
SEND_SEQUENCE = key(2, VARINT)
SEND_NUM_MESSAGES = key(3, VARINT)

Done = Callable[[Position | None, PulsarError | None], None]


class EntryMetadata(NamedTuple):
    """What is said of an entry; `MessageMetadata`, as far as we write it."""

    publish_ms: int
    """The time of the entry."""
    properties: Sequence[tuple[str, str]] = ()
    """Of the entry, seen by every client."""
    partition_key: str | None = None
    """What compaction goes by."""
    event_ms: int = 0
    """The time that the application gave it."""
    batch: int | None = None
    """The payload is a batch of Pulsar's own, of so many messages."""


class Pending(NamedTuple):
    """An entry that no broker has acknowledged yet."""

    sequence_id: int
    num_messages: int
    metadata: bytes
    payload: Sequence[Buffer]
    payload_bytes: int
    done: Done


def metadata_head(producer_name: str) -> bytes:
    """What the metadata of all entries of a producer begins with."""
    return PRODUCER_NAME + _text(producer_name)


def encode_metadata(head: bytes, sequence_id: int, said: EntryMetadata) -> bytes:
    """Encode the metadata of an entry; written out, for it is on the way of each."""
    publish_ms, properties, partition_key, event_ms, batch = said
    parts = [head, SEQUENCE_ID, varint(sequence_id), PUBLISH_TIME, varint(publish_ms)]
    for name, value in properties:
        pair = KeyValue(name, value).encode()
        parts += PROPERTIES, varint(len(pair)), pair
    if partition_key is not None:
        parts += PARTITION_KEY, _text(partition_key)
    if batch is not None:
        parts += NUM_MESSAGES_IN_BATCH, varint(batch)
    if event_ms:
        parts += EVENT_TIME, varint(event_ms)
    return b"".join(parts)


def size_of(payload: Sequence[Buffer]) -> int:
    """How many bytes the parts of a payload have."""
    size = 0
    for part in payload:
        size += len(part) if type(part) is bytes else memoryview(part).nbytes
    return size


class ProducerSlot:
    """A producer that is open on a connection, or asked to be.

    Args:
        connection: to the broker.
        receipt: called with each entry that is stored.
        left: called once, when entries are not taken here any more.
    """

    def __init__(
        self,
        connection: Connection,
        receipt: Callable[["ProducerSlot", SendReceipt], None],
        left: Callable[["ProducerSlot", PulsarError], None],
    ) -> None:
        self.connection = connection
        self.producer_id = next(connection.ids)
        self.is_closed = False
        self._receipt = receipt
        self._left = left
        # Of a SEND only numbers differ, and it is on the way of every entry.
        self._send_head = SEND_PRODUCER + varint(self.producer_id) + SEND_SEQUENCE
        connection.producers[self.producer_id] = self

    def write(self, one: Pending) -> None:
        """Send an entry."""
        fields = self._send_head + varint(one.sequence_id)
        if one.num_messages != 1:
            fields += SEND_NUM_MESSAGES + varint(one.num_messages)
        command = SEND_HEAD + varint(len(fields)) + fields
        self.connection.write(payload_frame(command, one.metadata, one.payload))

    def receipt(self, receipt: SendReceipt) -> None:
        """Pass on that an entry is stored."""
        self._receipt(self, receipt)

    def send_error(self, error: SendError) -> None:
        """Leave: entries behind the one that failed must not overtake it."""
        self.abandon()
        self.closed(server_error(error.error, error.message))

    def closed(self, error: PulsarError) -> None:
        """Pass on that it is not open any more."""
        self.connection.producers.pop(self.producer_id, None)
        if not self.is_closed:
            self.is_closed = True
            self._left(self, error)

    def abandon(self) -> None:
        """Close it without waiting, if the connection still stands."""
        self.connection.producers.pop(self.producer_id, None)
        if self.connection.broken is None:
            # Nobody waits for the answer: 0 is no request's id.
            self.connection.tell(CloseProducer(self.producer_id, 0))

    async def leave(self) -> None:
        """Close it; what was sent before is acknowledged before this returns."""
        with contextlib.suppress(PulsarError):
            await self.connection.request(
                lambda number: CloseProducer(self.producer_id, number),
                Success,
                CLOSE_TIMEOUT_S,
            )
        self.connection.producers.pop(self.producer_id, None)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return varint(len(encoded)) + encoded
