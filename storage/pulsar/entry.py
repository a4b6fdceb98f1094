"""One entry of a topic as a broker sends it: metadata, and on demand the payload."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, NamedTuple

from ropeway.storage.pulsar.commands import KeyValue
from ropeway.storage.pulsar.compression import decompress
from ropeway.storage.pulsar.errors import EntryError, WireError
from ropeway.storage.pulsar.frames import SIZE, decode_rest
from ropeway.storage.pulsar.protobuf import Message

_SHORT_BYTES = 64 * 1024
"""So much is inflated on the loop: a few hundred microseconds."""


class Position(NamedTuple):
    """Where an entry is stored; positions of a topic grow."""

    ledger: int
    entry: int

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


class BrokerMetadata(Message, frozen=True):
    """What a broker adds to an entry (PIP-70)."""

    broker_ms: Annotated[int | None, 1] = None
    index: Annotated[int | None, 2] = None


class Metadata(Message, frozen=True):
    """What the producer of an entry says of it; `MessageMetadata`, 4.0.8."""

    producer_name: Annotated[str, 1]
    sequence_id: Annotated[int, 2]
    publish_ms: Annotated[int, 3]
    properties: Annotated[tuple[bytes, ...], 4] = ()
    """Encoded, for few readers look at them."""
    partition_key: Annotated[str | None, 6] = None
    compression: Annotated[int, 8] = 0
    uncompressed_bytes: Annotated[int, 9] = 0
    num_messages: Annotated[int | None, 11] = None
    """None: the payload is one message, not a batch."""
    event_ms: Annotated[int, 12] = 0
    encryption_keys: Annotated[tuple[bytes, ...], 13] = ()
    partition_key_b64: Annotated[bool, 17] = False
    ordering_key: Annotated[bytes | None, 18] = None
    deliver_at_ms: Annotated[int, 19] = 0
    marker: Annotated[int | None, 20] = None
    transaction: Annotated[int | None, 22] = None
    highest_sequence_id: Annotated[int, 24] = 0
    null_value: Annotated[bool, 25] = False
    chunks: Annotated[int, 27] = 0


class BatchedMetadata(Message, frozen=True):
    """What the producer says of one message of a batch; `SingleMessageMetadata`."""

    properties: Annotated[tuple[bytes, ...], 1] = ()
    partition_key: Annotated[str | None, 2] = None
    payload_bytes: Annotated[int, 3] = 0
    compacted_out: Annotated[bool, 4] = False
    event_ms: Annotated[int, 5] = 0
    partition_key_b64: Annotated[bool, 6] = False
    ordering_key: Annotated[bytes | None, 7] = None
    sequence_id: Annotated[int, 8] = 0
    null_value: Annotated[bool, 9] = False


def properties_of(metadata: Metadata | BatchedMetadata) -> dict[str, str]:
    """The properties that a producer gave a message.

    Raises:
        WireError: they are damaged.
    """
    pairs = (KeyValue.decode(encoded) for encoded in metadata.properties)
    return {pair.key: pair.value for pair in pairs}


class Entry:
    """One stored entry: one message, or a batch of them.

    Args:
        position: where it is stored.
        frame: of the MESSAGE that brought it.
        at: where the command ends in `frame`.

    Raises:
        WireError: `frame` does not hold an entry.
    """

    __slots__ = ("__dict__", "_frame", "_rest", "metadata", "position")

    def __init__(self, position: Position, frame: bytes, at: int) -> None:
        self.position = position
        self._frame = frame
        self._rest = decode_rest(frame, at)
        self.metadata = Metadata.decode(frame, *self._rest.metadata)
        """As it was sent."""

    @property
    def producer_name(self) -> str:
        """Who sent it."""
        return self.metadata.producer_name

    @property
    def sequence_id(self) -> int:
        """The number its producer gave it."""
        return self.metadata.sequence_id

    @property
    def highest_sequence_id(self) -> int:
        """The last number that it takes up; `sequence_id` where it takes up one."""
        return max(self.metadata.highest_sequence_id, self.metadata.sequence_id)

    @property
    def publish_ms(self) -> int:
        """When its producer sent it, by the producer's clock."""
        return self.metadata.publish_ms

    @property
    def num_messages(self) -> int:
        """How many permits it takes: 1, or the size of its batch."""
        return self.metadata.num_messages or 1

    @property
    def partition_key(self) -> str | None:
        """The key that its producer gave it."""
        return self.metadata.partition_key

    @property
    def event_ms(self) -> int:
        """The time that its producer gave it; 0 for none."""
        return self.metadata.event_ms

    @property
    def index(self) -> int | None:
        """How many messages the topic had before its last; None: brokers do not say."""
        return self._broker_metadata.index

    @property
    def broker_ms(self) -> int | None:
        """When a broker took it; None: brokers do not say."""
        return self._broker_metadata.broker_ms

    @cached_property
    def _broker_metadata(self) -> BrokerMetadata:
        place = self._rest.broker_metadata
        return BrokerMetadata.decode(self._frame, *place) if place else BrokerMetadata()

    @cached_property
    def properties(self) -> dict[str, str]:
        """The properties that its producer gave it."""
        return properties_of(self.metadata)

    @property
    def takes_long(self) -> bool:
        """Whether its payload should first be asked for on a thread."""
        metadata = self.metadata
        return metadata.compression != 0 and metadata.uncompressed_bytes > _SHORT_BYTES

    @property
    def payload(self) -> memoryview:
        """What was sent, decompressed.

        Raises:
            EntryError: it is damaged, or a kind of entry that is not understood.
        """
        payload = self._payload
        if isinstance(payload, EntryError):
            raise payload
        return payload

    @cached_property
    def _payload(self) -> memoryview | EntryError:
        # What is wrong is found once, too.
        reason = self._unreadable()
        if reason is not None:
            return EntryError(f"the entry at {self.position} {reason}")
        stored = memoryview(self._frame)[self._rest.payload_at :]
        if self.metadata.compression == 0:
            return stored
        try:
            return decompress(
                self.metadata.compression, stored, self.metadata.uncompressed_bytes
            )
        except ValueError as error:
            return EntryError(f"the entry at {self.position}: {error}")

    def inflate(self) -> None:
        """Find `payload`, on a thread; what is wrong is said when it is asked for."""
        self._payload  # noqa: B018 - it stays

    def messages(self) -> Iterator[tuple[Metadata | BatchedMetadata, memoryview]]:
        """The messages in it: one, or those of a batch that compaction left.

        Raises:
            EntryError: as for `payload`, or the batch is damaged.
        """
        return (one for one in self.places() if one is not None)

    def places(
        self,
    ) -> Iterator[tuple[Metadata | BatchedMetadata, memoryview] | None]:
        """The same, with None for each one that compaction took out of a batch."""
        payload = self.payload
        if self.metadata.num_messages is None:
            yield self.metadata, payload
            return
        batch = bytes(payload)
        at = 0
        for _ in range(self.metadata.num_messages):
            try:
                at, end = _sized(batch, at)
                one = BatchedMetadata.decode(batch, at, end)
            except WireError as error:
                raise EntryError(f"the batch at {self.position}: {error}") from error
            at = end + one.payload_bytes
            if not end <= at <= len(batch):
                raise EntryError(
                    f"the batch at {self.position}: a message of {one.payload_bytes}"
                    f" bytes; allowed: 0 to {len(batch) - end}"
                )
            yield None if one.compacted_out else (one, payload[end:at])

    def _unreadable(self) -> str | None:
        metadata = self.metadata
        if not self._rest.intact:
            return "does not have its checksum: it is damaged"
        if metadata.encryption_keys:
            return "is encrypted; allowed: entries in the clear"
        if metadata.chunks > 1:
            return f"is one of {metadata.chunks} chunks; allowed: whole messages"
        if metadata.transaction is not None:
            return "is part of a transaction; allowed: entries outside of any"
        return None


def _sized(data: bytes, at: int) -> tuple[int, int]:
    allowed = len(data) - at - SIZE.size
    size = SIZE.unpack_from(data, at)[0] if allowed >= 0 else SIZE.size
    if size > allowed:
        raise WireError(f"a part of {size} bytes; allowed: 0 to {max(allowed, 0)}")
    return at + SIZE.size, at + SIZE.size + size
