"""What lite topics are called, and what marks their messages."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.gateway.wire import properties

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_BYTES = 64
"""Longest name: maxLiteTopicSize's default."""
_LEGAL = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_BYTES}}}\Z").match
_PROPERTY = f"{properties.VALUE_END}{properties.LITE_TOPIC}{properties.NAME_END}"
_MARK = _PROPERTY.encode()
_END = properties.VALUE_END.encode()


def complaint(name: str) -> str | None:
    """What is wrong with the name of a lite topic; None where nothing is.

    Source: GrpcValidator.validateLiteTopic, RocketMQ 5.5.0.
    """
    if _LEGAL(name):
        return None
    return (
        f"lite topic {name!r:.100}; allowed: 1 to {MAX_BYTES} letters, digits, "
        "hyphens and underscores of ASCII"
    )


def queue_name(parent: str, name: str) -> str:
    """Under which a group's progress in a lite topic is kept.

    Source: LiteUtil.toLmqName, RocketMQ 5.5.0.
    """
    return f"{names.LITE_QUEUE_PREFIX}{parent}{names.LITE_QUEUE_END}{name}"


def number(name: str) -> int:
    """A number by which a lite topic has its broker and its queue, wherever made."""
    return zlib.crc32(name.encode())


def broker(name: str, brokers: Iterable[str]) -> str:
    """Which of its topic's brokers a lite topic is on, of one at least."""
    known = sorted(brokers)
    return known[number(name) % len(known)]


def of_pairs(pairs: bytes) -> str | None:
    """The lite topic of a stored message, by its properties as `view_pairs` has them.

    None where there is none, or one that cannot be.
    """
    at = pairs.rfind(_MARK)
    if at < 0:
        return None
    at += len(_MARK)
    name = pairs[at : pairs.index(_END, at)].decode(errors="replace")
    return name if _LEGAL(name) else None


def parts_of(queue: str) -> tuple[str, str]:
    """The parent and the lite topic of a `queue_name`; neither has the sign in it."""
    rest = queue.removeprefix(names.LITE_QUEUE_PREFIX)
    parent, _, name = rest.rpartition(names.LITE_QUEUE_END)
    return parent, name
