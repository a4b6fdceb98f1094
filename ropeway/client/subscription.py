"""What a consumer wants of a topic: tag expressions.

Source: FilterAPI.buildSubscriptionData, RocketMQ 5.3.4.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.wire import bodies
from gateway.wire.properties import tag_hash, tags_of


class Subscription(Struct, frozen=True):
    """One topic with the tags that are wanted."""

    topic: str
    expression: str
    tags: frozenset[str]
    """The wanted tags; empty wants all messages."""
    version: int
    """Brokers take the larger of two; milliseconds since 1970."""

    def wants(self, tag: str | None) -> bool:
        """Whether a message with this tag is wanted, by the tag and not its hash."""
        return not self.tags or tag in self.tags

    def data(self) -> bodies.SubscriptionData:
        """The subscription as heartbeats carry it."""
        tags = sorted(self.tags)
        return bodies.SubscriptionData(
            topic=self.topic,
            sub_string=self.expression,
            tags_set=tags,
            code_set=sorted({tag_hash(tag) for tag in tags}),
            sub_version=self.version,
        )


def parse(topic: str, expression: str, version: int) -> Subscription:
    """Read `*`, or tags joined by `||`.

    Raises:
        ValueError: The expression names no tag.
    """
    text = expression.strip()
    if text in ("", bodies.SUB_ALL):
        return Subscription(topic, bodies.SUB_ALL, frozenset(), version)
    tags = tags_of(text)
    if not tags:
        raise ValueError(
            f"expression {expression!r} names no tag; allowed: '*' or 'TagA || TagB'"
        )
    return Subscription(topic, text, tags, version)
