"""What a consumer wants of a topic: tags, or an SQL condition.

Source: FilterAPI.buildSubscriptionData, RocketMQ 5.3.4.
"""

from __future__ import annotations

from msgspec import Struct

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.properties import tag_hash, tags_of


class Sql(str):
    """A condition in SQL92 on tags and properties: `Sql("TAGS = 'a' AND price > 5")`.

    It stands where an expression is asked for. Brokers of RocketMQ know it only with
    `enablePropertyFilter`.
    """

    __slots__ = ()


class Subscription(Struct, frozen=True):
    """One topic with what is wanted of it."""

    topic: str
    expression: str
    tags: frozenset[str]
    """The wanted tags; empty wants all messages."""
    version: int
    """Brokers take the larger of two; milliseconds since 1970."""
    expression_type: str = bodies.TAG
    """TAG, or SQL92, which is the broker's to evaluate."""

    def wants(self, tag: str | None) -> bool:
        """Whether a message with this tag is wanted, by the tag and not its hash."""
        return not self.tags or tag in self.tags

    def data(self) -> bodies.SubscriptionData:
        """The subscription as heartbeats carry it."""
        tags = sorted(self.tags)
        return bodies.SubscriptionData(
            topic=self.topic,
            sub_string=self.expression,
            tags_set=tuple(tags),
            code_set=tuple(sorted({tag_hash(tag) for tag in tags})),
            sub_version=self.version,
            expression_type=self.expression_type,
        )


def parse(topic: str, expression: str, version: int) -> Subscription:
    """Read `*`, or tags joined by `||`; an `Sql` is for the broker to read.

    Raises:
        ValueError: The expression names no tag, or the condition is empty.
    """
    text = expression.strip()
    if isinstance(expression, Sql):
        if not text:
            raise ValueError("an SQL condition is empty; allowed: like Sql('a > 5')")
        return Subscription(topic, text, frozenset(), version, bodies.SQL92)
    if text in ("", bodies.SUB_ALL):
        return Subscription(topic, bodies.SUB_ALL, frozenset(), version)
    tags = tags_of(text)
    if not tags:
        raise ValueError(
            f"expression {expression!r} names no tag; allowed: '*' or 'TagA || TagB'"
        )
    return Subscription(topic, text, tags, version)
