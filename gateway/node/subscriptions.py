"""What a consumer wants of a topic, made ready for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.node import sql
from gateway.wire import bodies, message, properties
from storage.api import MAX_LOOKS, Filter

if TYPE_CHECKING:
    from collections.abc import Callable

_TAGS = b"\x02TAGS\x01"

_LOOKS_AT_PROPERTIES = 3 * MAX_LOOKS
"""In one read: some 10 ms. A condition on more than three sees fewer records."""

_NOTHING = Filter(tag_hashes=frozenset())


class SubscriptionError(Exception):
    """An expression cannot be used; the text says why."""


class Subscription(NamedTuple):
    """A subscription of a group to a topic."""

    expression: str
    expression_type: str
    version: int
    filter: Filter | None
    """None where all messages are wanted."""
    problem: str | None = None
    """Why the expression cannot be used, where it was kept all the same."""

    @property
    def tags(self) -> frozenset[str]:
        """The tags that are wanted, where it is by tags that some are."""
        if self.filter is None or self.expression_type != bodies.TAG:
            return frozenset()
        return properties.tags_of(self.expression)


def build(
    expression: str | None, expression_type: str | None, version: int
) -> Subscription:
    """Read an expression.

    Args:
        expression: For tags `*`, empty, or tags separated by `||`; for SQL92 a
            condition.
        expression_type: TAG, which None and an empty one mean too, or SQL92.
        version: The client's time stamp of the subscription.

    Raises:
        SubscriptionError: The type is not known, or it is no expression of its type.
    """
    kind = expression_type or bodies.TAG
    if kind == bodies.SQL92:
        return _by_sql(expression or "", version)
    if kind != bodies.TAG:
        raise SubscriptionError(f"expression type {kind:.40}; allowed: TAG, SQL92")
    text = (expression or bodies.SUB_ALL).strip() or bodies.SUB_ALL
    if text == bodies.SUB_ALL:
        return Subscription(text, kind, version, None)
    tags = properties.tags_of(text)
    if not tags:
        raise SubscriptionError(f"no tag in subscription {text!r:.80}")
    hashes = frozenset(map(properties.tag_hash, tags))
    return Subscription(text, kind, version, Filter(hashes, _tagged(tags)))


def build_anyhow(
    expression: str | None, expression_type: str | None, version: int
) -> Subscription:
    """The same for a heartbeat, where a bad expression costs nothing but itself.

    RocketMQ takes the heartbeat, and refuses the pulls: so does this, with a
    subscription that has a `problem` and wants nothing.
    """
    try:
        return build(expression, expression_type, version)
    except SubscriptionError as error:
        kind = expression_type or bodies.TAG
        return Subscription(expression or "", kind, version, _NOTHING, str(error))


def _by_sql(expression: str, version: int) -> Subscription:
    try:
        condition = sql.compile_condition(expression)
    except sql.SqlError as error:
        raise SubscriptionError(f"invalid SQL92 expression: {error}") from error
    looks = min(MAX_LOOKS, _LOOKS_AT_PROPERTIES // max(1, condition.terms))
    wanted = Filter(accept=condition.accepts, looks=looks)
    return Subscription(expression, bodies.SQL92, version, wanted)


def _tagged(tags: frozenset[str]) -> Callable[[bytes | memoryview], bool]:
    """Whether a record has one of the tags; others can share their hashes."""
    wanted = {tag.encode() for tag in tags}

    def accept(record: bytes | memoryview) -> bool:
        pairs = message.view_pairs(record)
        # The last one counts, as where properties are parsed into a map.
        start = pairs.rfind(_TAGS) + len(_TAGS)
        return start >= len(_TAGS) and pairs[start : pairs.find(b"\x02", start)] in (
            wanted
        )

    return accept
