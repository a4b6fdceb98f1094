"""What clients may name: topics, groups, invisible times.

Source: GrpcValidator.java, SendMessageActivity.java and ProxyConfig.java, 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.grpc.message_decoder import named
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.node import names

if TYPE_CHECKING:
    from ropeway.gateway.grpc.protocol import Duration, Resource

MIN_INVISIBLE_MS = 10_000
MAX_INVISIBLE_MS = 12 * 3_600_000


def topic(resource: Resource) -> str:
    """A topic that clients may use.

    Raises:
        RefusedError: It is none.
    """
    name = named(resource)
    if complaint := names.topic_complaint(name):
        raise RefusedError(Code.ILLEGAL_TOPIC, complaint)
    if names.is_system_topic(name):
        raise RefusedError(Code.ILLEGAL_TOPIC, f"{name} is a system topic")
    return name


def group(resource: Resource) -> str:
    """A consumer group that clients may use.

    Raises:
        RefusedError: It is none.
    """
    name = named(resource)
    if complaint := names.group_complaint(name):
        raise RefusedError(Code.ILLEGAL_CONSUMER_GROUP, complaint)
    if name.startswith(names.SYSTEM_GROUP_PREFIX):
        raise RefusedError(Code.ILLEGAL_CONSUMER_GROUP, f"{name} is a system group")
    return name


def duration_ms(duration: Duration) -> int:
    """A duration in milliseconds."""
    return duration.seconds * 1000 + duration.nanos // 1_000_000


def invisible_ms(duration: Duration, least_ms: int) -> int:
    """For how long a message is kept from others.

    Raises:
        RefusedError: Too short, or too long; in RocketMQ's words, which clients match.

    Source: GrpcValidator.validateInvisibleTime, RocketMQ 5.5.0.
    """
    asked_ms = duration_ms(duration)
    wrong = ""
    if asked_ms < least_ms:
        wrong = f"small. min is {least_ms}"
    elif asked_ms > MAX_INVISIBLE_MS:
        wrong = f"large. max is {MAX_INVISIBLE_MS}"
    if wrong:
        raise RefusedError(
            Code.ILLEGAL_INVISIBLE_TIME,
            f"the invisibleTime is too {wrong}; this is {asked_ms}",
        )
    return asked_ms
