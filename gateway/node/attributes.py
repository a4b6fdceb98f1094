"""Attributes of topics and groups, and changes to them like `+name=value,-other`.

Source: AttributeParser.java, AttributeUtil.java and TopicAttributes.java, RocketMQ
5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.api import EntryFormat


class BadAttributeError(Exception):
    """An attribute cannot be set so; the text says what came and what is allowed."""


class _Attribute(NamedTuple):
    values: frozenset[str]
    """The allowed ones; empty for whole numbers from -1 on."""
    changeable: bool


ENTRY_FORMAT = "entry.format"

TOPIC_ATTRIBUTES = {
    "message.type": _Attribute(
        frozenset({"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION"}),
        changeable=True,
    ),
    "queue.type": _Attribute(frozenset({"SimpleCQ"}), changeable=False),
    "cleanup.policy": _Attribute(frozenset({"DELETE"}), changeable=False),
    "reserve.time": _Attribute(frozenset(), changeable=True),
    ENTRY_FORMAT: _Attribute(frozenset({"PACKED", "PULSAR"}), changeable=False),
}
"""What a topic may have. A real broker also knows message.type MIXED, which its
default set-up refuses, queue.type BatchCQ and cleanup.policy COMPACTION; and none of
how entries are kept, which is Ropeway's own."""


def entry_format(given: Mapping[str, str]) -> EntryFormat:
    """How a topic's log is to keep records, by the topic's attributes."""
    return "pulsar" if given.get(ENTRY_FORMAT) == "PULSAR" else "packed"


def parse(text: str | None) -> dict[str, str]:
    """Read changes from their text form; a deletion has an empty value.

    Raises:
        BadAttributeError: A name comes twice.
    """
    changes: dict[str, str] = {}
    for word in filter(None, (text or "").split(",")):
        name, _, value = word.partition("=")
        if name in changes:
            raise BadAttributeError(f"attribute {name:.80} comes twice; allowed: once")
        changes[name] = value
    return changes


def alter_topic(
    current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str]:
    """The attributes of a topic after changes.

    Args:
        current: Those that it has; None where it is being created.
        changes: `+name` to value, or `-name` to anything.

    Raises:
        BadAttributeError: A change is not possible.
    """
    for sign_and_name, value in changes.items():
        name = sign_and_name[1:]
        known = TOPIC_ATTRIBUTES.get(name)
        if known is None:
            allowed = ", ".join(TOPIC_ATTRIBUTES)
            raise BadAttributeError(f"attribute {name!r:.80}; allowed: {allowed}")
        if current is not None and not known.changeable:
            raise BadAttributeError(f"attribute {name} can only be set at creation")
        if sign_and_name.startswith("+") and not _is_allowed(known, value):
            allowed = ", ".join(sorted(known.values)) or "a whole number from -1 on"
            raise BadAttributeError(f"{name} is {value!r:.80}; allowed: {allowed}")
    return alter(current, changes)


def alter(
    current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str]:
    """Attributes after changes, whatever their names are.

    Raises:
        BadAttributeError: A change has no sign, or deletes what is not there.
    """
    altered = dict(current or {})
    for sign_and_name, value in changes.items():
        sign, name = sign_and_name[:1], sign_and_name[1:]
        if sign == "+" and name:
            altered[name] = value
        elif sign == "-" and name in altered:
            del altered[name]
        elif sign == "-":
            raise BadAttributeError(
                f"attribute {name!r:.80} is not there to be deleted"
            )
        else:
            raise BadAttributeError(
                f"attribute change {sign_and_name!r:.80}; allowed: +name=value or -name"
            )
    return altered


def _is_allowed(attribute: _Attribute, value: str) -> bool:
    if attribute.values:
        return value in attribute.values
    return value == "-1" or value.isdecimal()
