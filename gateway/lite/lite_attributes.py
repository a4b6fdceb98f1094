"""How groups and topics are set up for lite topics, by their attributes.

Source: SubscriptionGroupConfig, TopicConfig and LiteMetadataUtil, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node import attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

SUBSCRIPTION_QUOTA = 2000
"""Lite topics of one client: lite.sub.client.quota's default."""
LEAST_EXPIRY_MS = 15 * 60_000
"""A lite topic that was used since does not expire, whatever is set: minLiteTTl."""


class LiteGroup(NamedTuple):
    """What a group says of lite topics."""

    parent: str
    """The topic whose lite topics it consumes; empty for a group of other topics."""
    exclusive: bool
    """Whether a lite topic is consumed by the client that subscribed to it last."""
    resets_when_taken: bool
    """Whether that client begins at the first message."""
    resets_when_left: bool
    """Whether who subscribes after an unsubscription begins at the first message."""
    quota: int
    """Lite topics that one client may subscribe to."""
    wants_all: bool
    """Whether its clients consume every lite topic of the parent, and name none."""


def of_group(given: Mapping[str, str]) -> LiteGroup:
    """What a group's attributes say."""
    quota = int(given.get(attributes.LITE_QUOTA, SUBSCRIPTION_QUOTA))
    return LiteGroup(
        given.get(attributes.LITE_PARENT, ""),
        given.get(attributes.LITE_MODEL) == attributes.EXCLUSIVE,
        given.get(attributes.LITE_RESET_EXCLUSIVE) == "true",
        given.get(attributes.LITE_RESET_UNSUBSCRIBED) == "true",
        quota,
        # Whatever it is set to: isWildcardLiteGroup.
        attributes.LITE_WILDCARD in given,
    )


def expiry_ms(given: Mapping[str, str]) -> int | None:
    """After how long without a message a topic's lite topics expire; None: never."""
    minutes = int(given.get(attributes.LITE_EXPIRATION, -1))
    return max(minutes * 60_000, LEAST_EXPIRY_MS) if minutes > 0 else None
