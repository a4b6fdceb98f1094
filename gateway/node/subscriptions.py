"""What a consumer wants of a topic, made ready for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node import sql
from ropeway.gateway.request_limits import RequestsConfig
from ropeway.gateway.wire import bodies, message, properties
from ropeway.storage.api import MAX_LOOKS, Filter

if TYPE_CHECKING:
    from collections.abc import Callable

_TAGS = b"\x02TAGS\x01"

_LOOKS_AT_PROPERTIES = 3 * MAX_LOOKS
"""In one read: some 10 ms. A condition on more than three sees fewer records."""

_NOTHING = Filter(tag_hashes=frozenset())


class SubscriptionError(Exception):
    """An expression cannot be used; the text says why."""


KEPT_CHARACTERS = 128
"""A subscription with so long an expression is kept with its filter, which takes fifty
times as much memory; one with a longer expression is built for each request, from what
`sql` keeps compiled."""


class Subscription(NamedTuple):
    """A subscription of a group to a topic."""

    expression: str
    expression_type: str
    version: int
    filter: Filter | None
    """None where all messages are wanted."""
    problem: str | None = None
    """Why the expression cannot be used, where it was kept all the same."""
    is_read: bool = True
    """Whether its filter is there; a heartbeat's is made when it is first used."""

    @property
    def tags(self) -> frozenset[str]:
        """The tags that are wanted, where it is by tags that some are."""
        if self.expression_type != bodies.TAG or self.expression == bodies.SUB_ALL:
            return frozenset()
        return properties.tags_of(self.expression)


_DEFAULT = RequestsConfig()


def build(
    expression: str | None,
    expression_type: str | None,
    version: int,
    limits: RequestsConfig = _DEFAULT,
) -> Subscription:
    """Read an expression.

    Args:
        expression: For tags `*`, empty, or tags separated by `||`; for SQL92 a
            condition.
        expression_type: TAG, which None and an empty one mean too, or SQL92.
        version: The client's time stamp of the subscription.
        limits: How long it may be.

    Raises:
        SubscriptionError: The type is not known, or it is no expression of its type.
        NotCompiledError: It takes time to read: `sql.compile_later`, and again.
    """
    kind = expression_type or bodies.TAG
    if len(expression or "") > limits.expression_characters:
        raise SubscriptionError(
            f"expression of {len(expression or '')} characters; "
            f"allowed: {limits.expression_characters}"
        )
    if kind == bodies.SQL92:
        return _by_sql(expression or "", version, limits)
    if kind != bodies.TAG:
        raise SubscriptionError(f"expression type {kind:.40}; allowed: TAG, SQL92")
    text = (expression or bodies.SUB_ALL).strip() or bodies.SUB_ALL
    if text == bodies.SUB_ALL:
        return Subscription(text, kind, version, None)
    tags = properties.tags_of(text)
    if not tags:
        raise SubscriptionError(f"no tag in subscription {text!r:.80}")
    if len(tags) > limits.expression_terms:
        raise SubscriptionError(f"{len(tags)} tags; allowed: {limits.expression_terms}")
    hashes = frozenset(map(properties.tag_hash, tags))
    return Subscription(text, kind, version, Filter(hashes, _tagged(tags)))


def unread(one: bodies.SubscriptionData) -> Subscription:
    """A subscription of a heartbeat, which costs nothing until somebody uses it."""
    kind = one.expression_type or bodies.TAG
    text = one.sub_string
    if kind == bodies.TAG:
        text = text.strip() or bodies.SUB_ALL
    is_read = text == bodies.SUB_ALL and kind == bodies.TAG
    filtering = None if is_read else _NOTHING
    return Subscription(text, kind, one.sub_version, filtering, is_read=is_read)


def read(one: Subscription, limits: RequestsConfig = _DEFAULT) -> Subscription:
    """A heartbeat's subscription with its filter.

    RocketMQ takes a heartbeat with a bad expression, and refuses the pulls: so does
    this, with a subscription that has a `problem` and wants nothing.

    Raises:
        NotCompiledError: It takes time to read: `sql.compile_later`, and again.
    """
    if one.is_read:
        return one
    try:
        return build(one.expression, one.expression_type, one.version, limits)
    except SubscriptionError as error:
        return one._replace(problem=str(error), is_read=True)


def _by_sql(expression: str, version: int, limits: RequestsConfig) -> Subscription:
    try:
        condition = sql.compile_quickly(expression)
    except sql.SqlError as error:
        raise SubscriptionError(f"invalid SQL92 expression: {error}") from error
    if condition.terms > limits.expression_terms:
        raise SubscriptionError(
            f"SQL92 expression of {condition.terms} properties; "
            f"allowed: {limits.expression_terms}"
        )
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
