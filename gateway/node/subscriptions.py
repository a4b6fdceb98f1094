"""What a consumer wants of a topic, made ready for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.wire import bodies, message, properties
from storage.api import Filter

if TYPE_CHECKING:
    from collections.abc import Callable

_TAGS = b"\x02TAGS\x01"


class SubscriptionError(Exception):
    """An expression cannot be used; the text says why."""


class Subscription(NamedTuple):
    """A subscription of a group to a topic."""

    expression: str
    expression_type: str
    version: int
    filter: Filter | None
    """None where all messages are wanted."""


def build(
    expression: str | None, expression_type: str | None, version: int
) -> Subscription:
    """Read an expression.

    Args:
        expression: `*`, empty, or tags separated by `||`.
        expression_type: TAG, or None for it.
        version: The client's time stamp of the subscription.

    Raises:
        SubscriptionError: Its type is not supported, or no tag is left of it.
    """
    kind = expression_type or bodies.TAG
    if kind != bodies.TAG:
        raise SubscriptionError(f"expression type {kind:.40}; allowed: TAG")
    text = (expression or bodies.SUB_ALL).strip() or bodies.SUB_ALL
    if text == bodies.SUB_ALL:
        return Subscription(text, kind, version, None)
    tags = properties.tags_of(text)
    if not tags:
        raise SubscriptionError(f"no tag in subscription {text!r:.80}")
    hashes = frozenset(map(properties.tag_hash, tags))
    return Subscription(text, kind, version, Filter(hashes, _tagged(tags)))


def _tagged(tags: frozenset[str]) -> Callable[[bytes | memoryview], bool]:
    """Whether a record has one of the tags; others can share their hashes."""
    wanted = {tag.encode() for tag in tags}

    def accept(record: bytes | memoryview) -> bool:
        pairs = b"\x02" + message.view_properties(record)
        # The last one counts, as where properties are parsed into a map.
        start = pairs.rfind(_TAGS) + len(_TAGS)
        return start >= len(_TAGS) and pairs[start : pairs.find(b"\x02", start)] in (
            wanted
        )

    return accept
