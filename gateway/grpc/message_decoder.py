"""What producers send, checked and turned into a body and properties to be stored.

Source: SendMessageActivity.java and ProxyConfig.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from ropeway.common.clock import now_ms
from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.protocol import Code, Encoding, MessageType
from ropeway.gateway.grpc.reserved import RESERVED, TRACE_CONTEXT
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.wire import message, properties

if TYPE_CHECKING:
    from ropeway.gateway.grpc.protocol import Message, SystemProperties
    from ropeway.gateway.node.node import Node

MAX_USER_PROPERTIES = 128
MAX_PROPERTIES_BYTES = 16 * 1024
MAX_MESSAGE_GROUP_BYTES = 64
_MAX_RECOVERY_S = 3600
_HALF = 0x4


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

    @property
    def properties(self) -> str:
        """The properties in wire form."""
        return properties.dump(self.pairs)

    @property
    def is_half(self) -> bool:
        """Whether it is the half of a transaction."""
        return bool(self.sys_flag & _HALF)

    @property
    def group_hash(self) -> int:
        """A number that is the same for a message group wherever it is computed."""
        return zlib.crc32(self.group.encode())


def outgoing(node: Node, topic: str, sent: Message) -> DecodedMessage:
    """Check a message and turn it into what is stored.

    Raises:
        RefusedError: It cannot be stored so.
    """
    system = sent.system_properties
    _check_body(node, sent)
    if not system.message_id.strip():
        raise RefusedError(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    validation.text("message id", system.message_id, Code.ILLEGAL_MESSAGE_ID)
    pairs = _user_properties(sent)
    _add_names(pairs, system)
    pairs[properties.UNIQ_KEY] = system.message_id
    _add_kind(pairs, system, node, topic)
    if system.trace_context:
        pairs[TRACE_CONTEXT] = validation.text(
            "trace context", system.trace_context, Code.BAD_REQUEST
        )
    if system.born_host.strip():
        pairs[properties.BORN_HOST] = validation.text(
            "born host", system.born_host, Code.BAD_REQUEST
        )
    sys_flag = message.COMPRESSED_FLAG if system.body_encoding == Encoding.GZIP else 0
    if system.message_type == MessageType.TRANSACTION:
        sys_flag |= _HALF
    born_ms = validation.timestamp_ms(system.born_timestamp)
    return DecodedMessage(
        system.message_id,
        sent.body,
        pairs,
        sys_flag,
        born_ms if born_ms > 0 else now_ms(),
        system.message_group,
        system.lite_topic,
    )


def _check_body(node: Node, sent: Message) -> None:
    limit = node.config.limits.message_bytes
    if not sent.body:
        raise RefusedError(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if len(sent.body) > limit:
        raise RefusedError(
            Code.MESSAGE_BODY_TOO_LARGE,
            f"message body of {len(sent.body)} bytes; allowed: 1 to {limit}",
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
        validation.text("property", name, Code.ILLEGAL_MESSAGE_PROPERTY_KEY)
        validation.text(f"property {name}", value, Code.ILLEGAL_MESSAGE_PROPERTY_KEY)
        size += len(name.encode()) + len(value.encode())
    if size > MAX_PROPERTIES_BYTES:
        raise RefusedError(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"properties of {size} bytes; allowed: {MAX_PROPERTIES_BYTES}",
        )
    return pairs


def _add_names(pairs: dict[str, str], system: SystemProperties) -> None:
    if system.tag:
        pairs[properties.TAGS] = validation.tag(system.tag)
    if system.keys:
        pairs[properties.KEYS] = " ".join(
            validation.text("key", key, Code.ILLEGAL_MESSAGE_KEY) for key in system.keys
        )


def _add_kind(
    pairs: dict[str, str], system: SystemProperties, node: Node, topic: str
) -> None:
    """What makes a message one of its type."""
    kind = system.message_type
    _add_lite_topic_and_priority(pairs, system)
    if system.message_group:
        pairs[properties.SHARDING_KEY] = _message_group(system.message_group)
    elif kind == MessageType.FIFO:
        raise _conflict("FIFO", "message group")
    if system.HasField("delivery_timestamp"):
        pairs[properties.TIMER_DELIVER_MS] = str(_delivery_ms(system, node))
    elif kind == MessageType.DELAY:
        raise _conflict("DELAY", "delivery timestamp")
    if kind == MessageType.TRANSACTION:
        pairs[properties.TRANSACTION_PREPARED] = "true"
        pairs[properties.PRODUCER_GROUP] = topic
        if system.HasField("orphaned_transaction_recovery_duration"):
            pairs[properties.CHECK_IMMUNITY_TIME] = str(_recovery_s(system))


def _add_lite_topic_and_priority(
    pairs: dict[str, str], system: SystemProperties
) -> None:
    if system.lite_topic:
        pairs[properties.LITE_TOPIC] = validation.lite_topic(system.lite_topic)
    elif system.message_type == MessageType.LITE:
        raise _conflict("LITE", "lite topic")
    if system.HasField("priority"):
        pairs[properties.PRIORITY] = str(_priority(system.priority))
    elif system.message_type == MessageType.PRIORITY:
        raise _conflict("PRIORITY", "priority")


def _conflict(kind: str, lacks: str) -> RefusedError:
    return RefusedError(
        Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        f"message of type {kind} without a {lacks}",
    )


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
    return validation.text("message group", name, Code.ILLEGAL_MESSAGE_GROUP)


def _delivery_ms(system: SystemProperties, node: Node) -> int:
    due_ms = validation.timestamp_ms(system.delivery_timestamp)
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
