"""What users send and receive: frozen values without behaviour of their own."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class MessageQueue(Struct, frozen=True, order=True):
    """One queue of a topic on one broker. Queues sort as in Java."""

    topic: str
    broker_name: str
    queue_id: int


class Message(Struct, frozen=True):
    """A message to send."""

    topic: str
    body: bytes
    """At most 4 MiB by default. Empty only in compacted topics, to delete its keys."""
    tags: str | None = None
    """One tag that consumers can choose by."""
    keys: tuple[str, ...] = ()
    """Words to find the message by; without spaces."""
    sharding_key: str | None = None
    """Messages with the same key go to the same queue, in the order of sending."""
    delay_level: int = 0
    """1 to 18: deliver after 1s 5s 10s 30s 1m ... 2h; 0: at once."""
    properties: dict[str, str] = {}
    """The sender's own properties. Names that brokers give a meaning work too."""
    flag: int = 0
    """A number that is carried along unread."""
    deliver_ms: int | None = None
    """Deliver at this time, in milliseconds since 1970; at once where it is past."""
    delay_ms: int = 0
    """Deliver so many milliseconds after the broker has got it."""


class SendStatus(Enum):
    """How safe a sent message is."""

    SEND_OK = "stored as the broker is set up to"
    FLUSH_DISK_TIMEOUT = "stored, but not on disk in time"
    FLUSH_SLAVE_TIMEOUT = "stored, but not on the slave in time"
    SLAVE_NOT_AVAILABLE = "stored, but there is no slave"


class SendResult(Struct, frozen=True):
    """Where a message went."""

    msg_id: str
    """The message's unique key, made by the client."""
    offset_msg_id: str
    """The id that names its place on a broker: `Admin.view` reads it by that."""
    queue: MessageQueue
    queue_offset: int
    status: SendStatus = SendStatus.SEND_OK
    recall_handle: str | None = None
    """Of a message that waits for its time: what `Producer.recall` takes."""


class ReceivedMessage(Struct, frozen=True, kw_only=True):
    """A message that was read from a broker."""

    topic: str
    """The topic that it was sent to, also when it comes again from a retry topic."""
    body: bytes
    """What was sent, decompressed; see `compression`."""
    queue: MessageQueue
    """Where it was read from: of a retry, the retry topic's queue."""
    queue_offset: int
    msg_id: str
    """The unique key that its sender gave it; else the `offset_msg_id`."""
    offset_msg_id: str
    message_id: int
    """The number within `offset_msg_id`; RocketMQ calls it commit log offset."""
    tags: str | None
    keys: tuple[str, ...]
    properties: dict[str, str]
    """The sender's own and the brokers'."""
    reconsume_times: int
    """How many times it was handled before without success."""
    flag: int
    sys_flag: int
    born_ms: int
    """When it was sent, in milliseconds since 1970, by the sender's clock."""
    born_host: tuple[str, int]
    store_ms: int
    """When it was stored, in milliseconds since 1970, by the broker's clock."""
    store_host: tuple[str, int]
    compression: str | None = None
    """Set where `body` is still compressed: in a way that this client cannot undo, or
    it would become longer than 16 MiB."""


class ConsumeResult(Enum):
    """What a handler says of messages; returning None says SUCCESS."""

    SUCCESS = "handled"
    RETRY = "deliver again later"


RETRY = ConsumeResult.RETRY
"""What a handler returns to get a message again later."""


class ConsumeFrom(Enum):
    """Where a group starts on a queue that it has never read."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
