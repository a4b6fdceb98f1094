"""Which type a message is of, and whether its topic takes that type.

RocketMQ's brokers store messages of any type in any topic. Its proxy checks them, for
gRPC clients and for remoting clients alike.

Source: TopicMessageType.java, TopicConfig.getTopicMessageType and
DefaultTopicMessageTypeValidator.java, RocketMQ 5.3.4; TopicMessageType, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.gateway.wire import properties

if TYPE_CHECKING:
    from collections.abc import Mapping

ATTRIBUTE = "message.type"
UNSPECIFIED = "UNSPECIFIED"
NORMAL = "NORMAL"
FIFO = "FIFO"
DELAY = "DELAY"
TRANSACTION = "TRANSACTION"
MIXED = "MIXED"
PRIORITY = "PRIORITY"
LITE = "LITE"

_SIGNS = (
    (
        DELAY,
        frozenset(
            {
                properties.DELAY,
                properties.TIMER_DELIVER_MS,
                properties.TIMER_DELAY_SEC,
                properties.TIMER_DELAY_MS,
            }
        ),
    ),
    (FIFO, frozenset({properties.SHARDING_KEY})),
    (PRIORITY, frozenset({properties.PRIORITY})),
    (LITE, frozenset({properties.LITE_TOPIC})),
)
"""Properties that only messages of a type have; the first that fits counts."""


class WrongTypeError(Exception):
    """A topic does not take messages of that type.

    Args:
        expected: The type that it takes.
        actual: What came.
    """

    def __init__(self, expected: str, actual: str) -> None:
        super().__init__(
            "TopicMessageType validate failed, the expected type is "
            f"{expected}, but actual type is {actual}"
        )


def type_of(pairs: Mapping[str, str]) -> str:
    """The type of a message, by its properties."""
    if pairs.get(properties.TRANSACTION_PREPARED) == "true":
        return TRANSACTION
    for kind, signs in _SIGNS:
        if not signs.isdisjoint(pairs):
            return kind
    return NORMAL


def type_of_topic(name: str, attributes: Mapping[str, str]) -> str:
    """The type of messages that a topic takes; MIXED where it takes any.

    Consumers' retries and dead letters are of their messages' types.
    """
    if name.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX)):
        return MIXED
    return attributes.get(ATTRIBUTE, NORMAL)


def check(expected: str, pairs: Mapping[str, str]) -> None:
    """Refuse a message of another type than its topic's.

    Args:
        expected: As of `type_of_topic`. A topic of an unspecified type takes nothing.
        pairs: The message's properties.

    Raises:
        WrongTypeError: It is of another.
    """
    actual = type_of(pairs)
    if (
        expected not in (actual, MIXED)
        # What was checked where it came from.
        and properties.TRANSFER_FLAG not in pairs
    ):
        raise WrongTypeError(expected, actual)
