"""The commands of Pulsar's binary protocol that Ropeway speaks, one struct each.

The number of a command is its `BaseCommand.Type`, and its field in `BaseCommand`.
Fields that Ropeway neither sends nor looks at are left out; they are skipped.
Source: PulsarApi.proto, Pulsar 4.0.8 (protocol version 21).
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, TypeVar

from ropeway.storage.pulsar.errors import WireError
from ropeway.storage.pulsar.protobuf import (
    LENGTH,
    VARINT,
    Message,
    key,
    read_length,
    read_varint,
    varint,
)

PROTOCOL_VERSION = 21
"""What Pulsar 4.0's own clients say; brokers answer older ones with less."""

COMMANDS: dict[int, type[Message]] = {}
NUMBERS: dict[type[Message], int] = {}
M = TypeVar("M", bound=type[Message])


def command(number: int) -> Callable[[M], M]:
    """Make a struct the command of a number."""

    def register(kind: M) -> M:
        if number in COMMANDS:
            raise TypeError(f"command {number} is {COMMANDS[number].__name__} already")
        COMMANDS[number] = kind
        NUMBERS[kind] = number
        return kind

    return register


class Access(IntEnum):
    """Who else may write while a producer is open (`ProducerAccessMode`)."""

    SHARED = 0
    EXCLUSIVE = 1
    EXCLUSIVE_WITH_FENCING = 3


class LookupType(IntEnum):
    """What to do with the address in an answer to a look-up."""

    REDIRECT = 0
    CONNECT = 1
    FAILED = 2


class MessageId(Message, frozen=True):
    """Where an entry is stored; (-1, -1) is nowhere."""

    ledger: Annotated[int, 1]
    entry: Annotated[int, 2]
    partition: Annotated[int, 3] = -1
    batch_index: Annotated[int, 4] = -1


class KeyValue(Message, frozen=True):
    """One property."""

    key: Annotated[str, 1]
    value: Annotated[str, 2]


class FeatureFlags(Message, frozen=True):
    """What a client can take."""

    auth_refresh: Annotated[bool, 1] = False
    broker_entry_metadata: Annotated[bool, 2] = False


class AuthData(Message, frozen=True):
    """A proof of who somebody is."""

    method: Annotated[str | None, 1] = None
    data: Annotated[bytes | None, 2] = None


@command(2)
class Connect(Message, frozen=True):
    """The first command on a connection."""

    client_version: Annotated[str, 1]
    auth_data: Annotated[bytes | None, 3] = None
    protocol_version: Annotated[int, 4] = 0
    auth_method: Annotated[str | None, 5] = None
    proxy_to_broker_url: Annotated[str | None, 6] = None
    feature_flags: Annotated[FeatureFlags | None, 10] = None


@command(3)
class Connected(Message, frozen=True):
    """The answer to `Connect`."""

    server_version: Annotated[str, 1]
    protocol_version: Annotated[int, 2] = 0
    max_message_bytes: Annotated[int | None, 3] = None


@command(4)
class Subscribe(Message, frozen=True):
    """Open a consumer."""

    topic: Annotated[str, 1]
    subscription: Annotated[str, 2]
    kind: Annotated[int, 3]
    consumer_id: Annotated[int, 4]
    request_id: Annotated[int, 5]
    consumer_name: Annotated[str | None, 6] = None
    durable: Annotated[bool, 8] = True
    start: Annotated[MessageId | None, 9] = None
    read_compacted: Annotated[bool | None, 11] = None
    initial_position: Annotated[int, 13] = 0
    force_topic_creation: Annotated[bool, 15] = True


@command(5)
class OpenProducer(Message, frozen=True):
    """Open a producer; `PRODUCER` in the protocol."""

    topic: Annotated[str, 1]
    producer_id: Annotated[int, 2]
    request_id: Annotated[int, 3]
    producer_name: Annotated[str | None, 4] = None
    epoch: Annotated[int, 8] = 0
    user_provided_producer_name: Annotated[bool, 9] = True
    access: Annotated[int, 10] = 0
    topic_epoch: Annotated[int | None, 11] = None


@command(6)
class Send(Message, frozen=True):
    """Store an entry; its metadata and payload follow in the same frame."""

    producer_id: Annotated[int, 1]
    sequence_id: Annotated[int, 2]
    num_messages: Annotated[int, 3] = 1
    highest_sequence_id: Annotated[int, 6] = 0


@command(7)
class SendReceipt(Message, frozen=True):
    """An entry is stored; where, unless it was a repeat."""

    producer_id: Annotated[int, 1]
    sequence_id: Annotated[int, 2]
    message_id: Annotated[MessageId | None, 3] = None


@command(8)
class SendError(Message, frozen=True):
    """An entry is not stored, or not known to be."""

    producer_id: Annotated[int, 1]
    sequence_id: Annotated[int, 2]
    error: Annotated[int, 3]
    message: Annotated[str, 4]


@command(9)
class Delivery(Message, frozen=True):
    """An entry for a consumer; `MESSAGE` in the protocol."""

    consumer_id: Annotated[int, 1]
    message_id: Annotated[MessageId, 2]


@command(10)
class Ack(Message, frozen=True):
    """A consumer is done with entries."""

    consumer_id: Annotated[int, 1]
    ack_type: Annotated[int, 2]
    message_ids: Annotated[tuple[MessageId, ...], 3] = ()


@command(11)
class Flow(Message, frozen=True):
    """Permit the broker to send more messages."""

    consumer_id: Annotated[int, 1]
    permits: Annotated[int, 2]


@command(13)
class Success(Message, frozen=True):
    """The answer to a request that has nothing else to say."""

    request_id: Annotated[int, 1]


@command(14)
class Refused(Message, frozen=True):
    """The answer to a request that failed; `ERROR` in the protocol."""

    request_id: Annotated[int, 1]
    error: Annotated[int, 2]
    message: Annotated[str, 3]


@command(15)
class CloseProducer(Message, frozen=True):
    """Close a producer; from a broker also: it is closed, open it again."""

    producer_id: Annotated[int, 1]
    request_id: Annotated[int, 2]


@command(16)
class CloseConsumer(Message, frozen=True):
    """Close a consumer; from a broker also: it is closed, open it again."""

    consumer_id: Annotated[int, 1]
    request_id: Annotated[int, 2]


@command(17)
class ProducerSuccess(Message, frozen=True):
    """The answer to `OpenProducer`."""

    request_id: Annotated[int, 1]
    producer_name: Annotated[str, 2]
    last_sequence_id: Annotated[int, 3] = -1
    topic_epoch: Annotated[int | None, 5] = None
    ready: Annotated[bool, 6] = True


@command(18)
class Ping(Message, frozen=True):
    """Ask whether the other side is there."""


@command(19)
class Pong(Message, frozen=True):
    """Say that it is."""


@command(23)
class Lookup(Message, frozen=True):
    """Ask which broker serves a topic."""

    topic: Annotated[str, 1]
    request_id: Annotated[int, 2]
    authoritative: Annotated[bool, 3] = False
    advertised_listener_name: Annotated[str | None, 7] = None


@command(24)
class LookupAnswer(Message, frozen=True):
    """The broker that serves a topic, or one that knows better."""

    broker_url: Annotated[str | None, 1] = None
    broker_url_tls: Annotated[str | None, 2] = None
    response: Annotated[int | None, 3] = None
    request_id: Annotated[int, 4] = -1
    authoritative: Annotated[bool, 5] = False
    error: Annotated[int | None, 6] = None
    message: Annotated[str, 7] = ""
    proxy_through_service_url: Annotated[bool, 8] = False


@command(28)
class Seek(Message, frozen=True):
    """Move a consumer; the broker closes it, and it opens again there."""

    consumer_id: Annotated[int, 1]
    request_id: Annotated[int, 2]
    message_id: Annotated[MessageId | None, 3] = None
    publish_ms: Annotated[int | None, 4] = None


@command(29)
class GetLastMessageId(Message, frozen=True):
    """Ask which entry is the last of a consumer's topic."""

    consumer_id: Annotated[int, 1]
    request_id: Annotated[int, 2]


@command(30)
class LastMessageId(Message, frozen=True):
    """The last entry of a topic, and where the consumer's cursor stands before."""

    message_id: Annotated[MessageId, 1]
    request_id: Annotated[int, 2]
    mark_delete: Annotated[MessageId | None, 3] = None


@command(34)
class GetSchema(Message, frozen=True):
    """Ask for the newest schema of a topic; any broker tells it."""

    request_id: Annotated[int, 1]
    topic: Annotated[str, 2]


class Schema(Message, frozen=True):
    """What is said of a topic's messages."""

    data: Annotated[bytes, 3] = b""


@command(35)
class SchemaAnswer(Message, frozen=True):
    """The schema, or why there is none; `GET_SCHEMA_RESPONSE` in the protocol."""

    request_id: Annotated[int, 1]
    error: Annotated[int | None, 2] = None
    message: Annotated[str, 3] = ""
    schema: Annotated[Schema | None, 4] = None


@command(36)
class AuthChallenge(Message, frozen=True):
    """Prove again who you are."""

    challenge: Annotated[AuthData | None, 2] = None


@command(37)
class AuthResponse(Message, frozen=True):
    """The proof."""

    client_version: Annotated[str, 1]
    response: Annotated[AuthData, 2]
    protocol_version: Annotated[int, 3] = 0


@command(68)
class TopicMigrated(Message, frozen=True):
    """A producer's or consumer's topic lives in another cluster now."""

    resource_id: Annotated[int, 1]
    resource_type: Annotated[int, 2]
    service_url: Annotated[str, 3] = ""
    tls_service_url: Annotated[str, 4] = ""


def encode_command(one: Message) -> bytes:
    """A command inside its `BaseCommand`."""
    number, body = NUMBERS[type(one)], one.encode()
    return b"\x08" + varint(number) + key(number, LENGTH) + varint(len(body)) + body


def decode_command(data: bytes, at: int, end: int) -> Message | None:
    """Read a `BaseCommand`; None for a command that Ropeway does not know.

    Raises:
        WireError: the bytes are not a `BaseCommand`.
    """
    if data[at : at + len(RECEIPT_HEAD)] == RECEIPT_HEAD:
        receipt = _quick_receipt(data, at + len(RECEIPT_HEAD), end)
        if receipt is not None:
            return receipt
    tag, at = read_varint(data, at, end)
    if tag != 1 << 3 | VARINT:
        raise WireError(f"a command that begins with tag {tag}; allowed: 8, its type")
    number, at = read_varint(data, at, end)
    if (kind := COMMANDS.get(number)) is None:
        return None
    while at < end:
        tag, at = read_varint(data, at, end)
        begin, at = read_length(data, at, end)
        if tag == number << 3 | LENGTH:
            return kind.decode(data, begin, at)
    raise WireError(f"a command of type {number} without its field {number}")


# One comes for every entry that is sent, and brokers keep the order of its fields.
RECEIPT_HEAD = b"\x08" + varint(NUMBERS[SendReceipt])
RECEIPT_TAGS = b"".join(
    (
        *(key(NUMBERS[SendReceipt], LENGTH), key(1, VARINT), key(2, VARINT)),
        *(key(3, LENGTH), key(1, VARINT), key(2, VARINT)),
    )
)
"""Of the command, producer and sequence id; of the message id, ledger and entry."""


def _quick_receipt(data: bytes, at: int, end: int) -> SendReceipt | None:
    """What we look at of a receipt with that order; None where it has another."""
    numbers = []
    for tag in RECEIPT_TAGS:
        if at >= end or data[at] != tag:
            return None
        number, at = read_varint(data, at + 1, end)
        numbers.append(number)
    _, producer_id, sequence_id, _, ledger, entry = numbers
    return SendReceipt(producer_id, sequence_id, MessageId(ledger, entry))
