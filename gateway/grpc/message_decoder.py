"""What producers send, checked and turned into a body and properties to be stored.

Source: SendMessageActivity.java and ProxyConfig.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from ropeway.common.clock import now_ms
from ropeway.gateway.grpc.protocol import Code, Encoding, MessageType
from ropeway.gateway.grpc.reserved import RESERVED, TRACE_CONTEXT
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.lite import names as lite_names
from ropeway.gateway.node import message_types
from ropeway.gateway.wire import message, properties

if TYPE_CHECKING:
    from ropeway.gateway.grpc.protocol import (
        Message,
        Resource,
        SystemProperties,
        Timestamp,
    )
    from ropeway.gateway.node.node import Node

NAMESPACE_END = "%"
MAX_USER_PROPERTIES = 128
MAX_PROPERTIES_BYTES = 16 * 1024
MAX_MESSAGE_GROUP_BYTES = 64
_MAX_RECOVERY_S = 3600
_HALF = 0x4
_NEEDED = {
    MessageType.FIFO: (properties.SHARDING_KEY, "FIFO", "message group"),
    MessageType.DELAY: (properties.TIMER_DELIVER_MS, "DELAY", "delivery timestamp"),
    MessageType.LITE: (properties.LITE_TOPIC, "LITE", "lite topic"),
    MessageType.PRIORITY: (properties.PRIORITY, "PRIORITY", "priority"),
}
"""What messages of some types must have, and how it is called."""


class DecodedMessage(NamedTuple):
    """A message on its way to the log."""

    message_id: str
    body: bytes
    pairs: dict[str, str]
    sys_flag: int
    born_ms: int
    group: str
    """Its message group."""
    lite_topic: str
    properties: str
    """The pairs in wire form."""
    kind: str
    """Its type, as `message_types` has it; TRANSACTION: the half of one."""


def outgoing(node: Node, topic: str, sent: Message) -> DecodedMessage:
    """Check a message and turn it into what is stored.

    Raises:
        RefusedError: It cannot be stored so.
    """
    system = sent.system_properties
    limit = node.config.limits.message_bytes
    if not sent.body:
        raise RefusedError(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if len(sent.body) > limit:
        raise RefusedError(
            Code.MESSAGE_BODY_TOO_LARGE,
            f"message body of {len(sent.body)} bytes; allowed: 1 to {limit}",
        )
    pairs = _user_properties(sent)
    _add_names(pairs, system)
    kind = _add_type(pairs, system, node, topic)
    sys_flag = message.COMPRESSED_FLAG if system.body_encoding == Encoding.GZIP else 0
    if kind == message_types.TRANSACTION:
        sys_flag |= _HALF
    born_ms = timestamp_ms(system.born_timestamp)
    return DecodedMessage(
        system.message_id,
        sent.body,
        pairs,
        sys_flag,
        born_ms if born_ms > 0 else now_ms(),
        system.message_group,
        system.lite_topic,
        properties.dump(pairs),
        kind,
    )


def _user_properties(sent: Message) -> dict[str, str]:
    pairs = dict(sent.user_properties)
    if len(pairs) > MAX_USER_PROPERTIES:
        raise RefusedError(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"{len(pairs)} user properties; allowed: {MAX_USER_PROPERTIES}",
        )
    size = len(sent.system_properties.tag.encode())
    size += sum(len(key.encode()) for key in sent.system_properties.keys)
    for name, value in pairs.items():
        if name in RESERVED:
            raise RefusedError(
                Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
                f"property is used by system: {name}",
            )
        text("property", name, Code.ILLEGAL_MESSAGE_PROPERTY_KEY)
        text(f"property {name}", value, Code.ILLEGAL_MESSAGE_PROPERTY_KEY)
        size += len(name.encode()) + len(value.encode())
    if size > MAX_PROPERTIES_BYTES:
        raise RefusedError(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"properties of {size} bytes; allowed: {MAX_PROPERTIES_BYTES}",
        )
    return pairs


def _add_names(pairs: dict[str, str], system: SystemProperties) -> None:
    """What a client says of a message that is text."""
    if not system.message_id.strip():
        raise RefusedError(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    pairs[properties.UNIQ_KEY] = text(
        "message id", system.message_id, Code.ILLEGAL_MESSAGE_ID
    )
    if tag := system.tag:
        if "|" in tag:
            raise RefusedError(Code.ILLEGAL_MESSAGE_TAG, f"tag {tag!r:.80} has a '|'")
        pairs[properties.TAGS] = text("tag", tag, Code.ILLEGAL_MESSAGE_TAG)
    if system.keys:
        pairs[properties.KEYS] = " ".join(
            text("key", key, Code.ILLEGAL_MESSAGE_KEY) for key in system.keys
        )
    if system.trace_context:
        trace_context = text("trace context", system.trace_context, Code.BAD_REQUEST)
        pairs[TRACE_CONTEXT] = trace_context
    if system.born_host.strip():
        born_host = text("born host", system.born_host, Code.BAD_REQUEST)
        pairs[properties.BORN_HOST] = born_host


def _add_type(
    pairs: dict[str, str], system: SystemProperties, node: Node, topic: str
) -> str:
    """What makes a message one of its type, and that; of several the last counts."""
    kind = message_types.NORMAL
    if system.lite_topic:
        kind = message_types.LITE
        pairs[properties.LITE_TOPIC] = lite_topic(system.lite_topic)
    if system.HasField("priority"):
        kind = message_types.PRIORITY
        pairs[properties.PRIORITY] = str(_priority(system.priority))
    if system.message_group:
        kind = message_types.FIFO
        pairs[properties.SHARDING_KEY] = _message_group(system.message_group)
    if system.HasField("delivery_timestamp"):
        kind = message_types.DELAY
        pairs[properties.TIMER_DELIVER_MS] = str(_delivery_ms(system, node))
    if system.message_type == MessageType.TRANSACTION:
        kind = message_types.TRANSACTION
        pairs[properties.TRANSACTION_PREPARED] = "true"
        pairs[properties.PRODUCER_GROUP] = topic
        if system.HasField("orphaned_transaction_recovery_duration"):
            pairs[properties.CHECK_IMMUNITY_TIME] = str(_recovery_s(system))
    needed = _NEEDED.get(system.message_type)
    if needed is not None and needed[0] not in pairs:
        _, named_kind, lacks = needed
        raise RefusedError(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
            f"message of type {named_kind} without a {lacks}",
        )
    return kind


def _priority(priority: int) -> int:
    if priority < 0:
        raise RefusedError(
            Code.BAD_REQUEST, f"priority is {priority}; allowed: 0 and more"
        )
    return priority


def _message_group(name: str) -> str:
    size = len(name.encode())
    if size > MAX_MESSAGE_GROUP_BYTES:
        raise RefusedError(
            Code.ILLEGAL_MESSAGE_GROUP,
            f"message group of {size} bytes; allowed: {MAX_MESSAGE_GROUP_BYTES}",
        )
    return text("message group", name, Code.ILLEGAL_MESSAGE_GROUP)


def _delivery_ms(system: SystemProperties, node: Node) -> int:
    due_ms = timestamp_ms(system.delivery_timestamp)
    left_ms = due_ms - now_ms()
    if due_ms <= 0 or left_ms > node.timer.max_delay_ms:
        raise RefusedError(
            Code.ILLEGAL_DELIVERY_TIME,
            f"delivery in {left_ms} ms; allowed: {node.timer.max_delay_ms}",
        )
    return due_ms


def _recovery_s(system: SystemProperties) -> int:
    seconds: int = system.orphaned_transaction_recovery_duration.seconds
    if not 0 <= seconds <= _MAX_RECOVERY_S:
        raise RefusedError(
            Code.BAD_REQUEST,
            f"orphaned transaction recovery after {seconds} s; "
            f"allowed: 0 to {_MAX_RECOVERY_S}",
        )
    return seconds


def named(resource: Resource) -> str:
    """A resource's name as remoting clients write it: namespace%name."""
    if resource.resource_namespace:
        return f"{resource.resource_namespace}{NAMESPACE_END}{resource.name}"
    return resource.name


def timestamp_ms(timestamp: Timestamp) -> int:
    """A time in milliseconds since 1970."""
    return timestamp.seconds * 1000 + timestamp.nanos // 1_000_000


def lite_topic(name: str) -> str:
    """A lite topic.

    Raises:
        RefusedError: It is none.
    """
    if complaint := lite_names.complaint(name):
        raise RefusedError(Code.ILLEGAL_LITE_TOPIC, complaint)
    return name


def text(what: str, value: str, code: Code) -> str:
    """A word that goes into a message's properties.

    Raises:
        RefusedError: It is of blanks alone, or has control characters.
    """
    if value.isspace():
        raise RefusedError(code, f"{what} is of {len(value)} blanks; allowed: a word")
    if not value.isprintable() and any(
        unicodedata.category(character) == "Cc" for character in value
    ):
        raise RefusedError(code, f"{what} {value!r:.80} has control characters")
    return value
