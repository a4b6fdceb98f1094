"""Attributes of topics and groups, and changes to them like `+name=value,-other`.

Refusals begin with RocketMQ's own words, which people search for.

Source: AttributeParser.java, AttributeUtil.java and TopicAttributes.java, RocketMQ
5.3.4; SubscriptionGroupAttributes, RocketMQ 5.5.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node import message_types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.storage.api import EntryFormat

_WHOLE = re.compile(r"-?[0-9]{1,19}\Z").match


class BadAttributeError(Exception):
    """An attribute cannot be set so; the text says what came and what is allowed."""


class _OneOf(NamedTuple):
    values: frozenset[str]
    changeable: bool

    def complaint(self, value: str) -> str | None:
        if value in self.values:
            return None
        return f"value is not in set: [{', '.join(sorted(self.values))}]"


class _Whole(NamedTuple):
    least: int
    most: int
    changeable: bool = True

    def complaint(self, value: str) -> str | None:
        if _WHOLE(value) and self.least <= int(value) <= self.most:
            return None
        return f"value is not in range({self.least}, {self.most})"


class _Text(NamedTuple):
    """Any text."""

    changeable: bool = True

    def complaint(self, _: str) -> str | None:
        return None


ENTRY_FORMAT = "entry.format"
RESERVE_TIME = "reserve.time"
CLEANUP_POLICY = "cleanup.policy"
COMPACTION = "COMPACTION"
LITE_EXPIRATION = "lite.topic.expiration"
"""Minutes without a message after which a lite topic expires."""
_MOST = (1 << 63) - 1

TOPIC_ATTRIBUTES: dict[str, _OneOf | _Whole | _Text] = {
    message_types.ATTRIBUTE: _OneOf(
        frozenset(
            {
                message_types.UNSPECIFIED,
                message_types.NORMAL,
                message_types.FIFO,
                message_types.DELAY,
                message_types.TRANSACTION,
                message_types.PRIORITY,
                message_types.LITE,
                message_types.MIXED,
            }
        ),
        changeable=True,
    ),
    LITE_EXPIRATION: _Whole(-1, 30 * 24 * 60),
    "queue.type": _OneOf(frozenset({"SimpleCQ"}), changeable=False),
    # RocketMQ's brokers fix it at creation. Here older messages are compacted, too.
    CLEANUP_POLICY: _OneOf(frozenset({"DELETE", COMPACTION}), changeable=True),
    RESERVE_TIME: _Whole(-1, _MOST),
    ENTRY_FORMAT: _OneOf(frozenset({"PACKED", "PULSAR"}), changeable=False),
}
"""What a topic may have. A real broker also knows queue.type BatchCQ; and nothing of
how entries are kept, which is Ropeway's own."""

PRIORITY_FACTOR = "priority.factor"
LITE_PARENT = "lite.bind.topic"
LITE_MODEL = "lite.sub.model"
EXCLUSIVE = "Exclusive"
LITE_RESET_EXCLUSIVE = "lite.sub.reset.offset.exclusive"
LITE_RESET_UNSUBSCRIBED = "lite.sub.reset.offset.unsubscribe"
LITE_QUOTA = "lite.sub.client.quota"
LITE_WILDCARD = "lite.sub.wildcard"
_YES_OR_NO = _OneOf(frozenset({"true", "false"}), changeable=True)

GROUP_ATTRIBUTES: dict[str, _OneOf | _Whole | _Text] = {
    PRIORITY_FACTOR: _Whole(0, 100),
    LITE_PARENT: _Text(),
    LITE_MODEL: _OneOf(frozenset({"Shared", EXCLUSIVE}), changeable=True),
    LITE_RESET_EXCLUSIVE: _YES_OR_NO,
    LITE_RESET_UNSUBSCRIBED: _YES_OR_NO,
    LITE_QUOTA: _Whole(-1, _MOST),
    LITE_WILDCARD: _Text(),
}
"""What a group may have. A real broker also knows lite.sub.client.max.event.cnt, a
bound that nothing here needs."""


def entry_format(given: Mapping[str, str]) -> EntryFormat:
    """How a topic's log is to keep records, by the topic's attributes."""
    return "pulsar" if given.get(ENTRY_FORMAT) == "PULSAR" else "packed"


def reserve_ms(given: Mapping[str, str]) -> int | None:
    """How long a topic's messages are kept in a tier; None where it does not say.

    The attribute counts hours.

    Source: FlatMessageFile.getFileReservedHours, RocketMQ 5.3.4.
    """
    hours = int(given.get(RESERVE_TIME, -1))
    return hours * 3_600_000 if hours > 0 else None


def priority_percent(given: Mapping[str, str]) -> int:
    """Of how many pops in a hundred a group has messages by their priorities."""
    return int(given.get(PRIORITY_FACTOR, 100))


def is_compacted(given: Mapping[str, str]) -> bool:
    """Whether the last message of each key is kept alone, by the topic's attributes."""
    return given.get(CLEANUP_POLICY) == COMPACTION


def fit_for_compaction(
    given: dict[str, str], needed: EntryFormat, *, created: bool
) -> dict[str, str]:
    """The attributes of a topic that may be compacted.

    Args:
        given: Those that it is to have.
        needed: How the log has to keep the records of compacted topics.
        created: Whether the topic is new, so that this can be chosen for it.

    Raises:
        BadAttributeError: Its records are kept otherwise.
    """
    if not is_compacted(given) or entry_format(given) == needed:
        return given
    if created and ENTRY_FORMAT not in given:
        return {**given, ENTRY_FORMAT: needed.upper()}
    raise BadAttributeError(
        f"{CLEANUP_POLICY} is {COMPACTION} and {ENTRY_FORMAT} is "
        f"{given.get(ENTRY_FORMAT, 'PACKED')}; allowed: {ENTRY_FORMAT}="
        f"{needed.upper()}, from the topic's creation on"
    )


def parse(text: str | None) -> dict[str, str]:
    """Read changes from their text form; a deletion has an empty value.

    Raises:
        BadAttributeError: A name comes twice, or has no sign.
    """
    changes: dict[str, str] = {}
    for word in filter(None, (text or "").split(",")):
        name, assigns, value = word.partition("=")
        if assigns and "+" not in name:
            raise BadAttributeError(
                f"add/alter attribute format is wrong: {name:.80}; allowed: +name=value"
            )
        if not assigns and "-" not in name:
            raise BadAttributeError(
                f"delete attribute format is wrong: {name:.80}; allowed: -name"
            )
        if name in changes:
            raise BadAttributeError(f"key duplication: {name:.80}; allowed: once")
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
    return _alter(TOPIC_ATTRIBUTES, current, changes)


def alter_group(
    current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str]:
    """The attributes of a group after changes, as `alter_topic`."""
    return _alter(GROUP_ATTRIBUTES, current, changes)


def _alter(
    known: Mapping[str, _OneOf | _Whole | _Text],
    current: Mapping[str, str] | None,
    changes: Mapping[str, str],
) -> dict[str, str]:
    altered = dict(current or {})
    seen: set[str] = set()
    for sign_and_name, value in changes.items():
        sign, name = sign_and_name[:1], sign_and_name[1:]
        if not name or "+" in name or "-" in name:
            raise BadAttributeError(
                f"kv string format wrong. attribute change {sign_and_name!r:.80}; "
                "allowed: +name=value or -name"
            )
        if name in seen:
            raise BadAttributeError(f"alter duplication key. key: {name:.80}")
        seen.add(name)
        if current is None and sign != "+":
            raise BadAttributeError(
                f"only add attribute is supported while creating topic. key: {name:.80}"
            )
        if sign not in ("+", "-"):
            raise BadAttributeError(
                f"wrong format key: {name:.80}; allowed: +name=value or -name"
            )
        if sign == "-" and name not in altered:
            raise BadAttributeError(f"attempt to delete a nonexistent key: {name:.80}")
        _check(known, name, value if sign == "+" else None, created=current is None)
        if sign == "+":
            altered[name] = value
        else:
            del altered[name]
    return altered


def _check(
    known: Mapping[str, _OneOf | _Whole | _Text],
    name: str,
    value: str | None,
    *,
    created: bool,
) -> None:
    attribute = known.get(name)
    if attribute is None:
        allowed = ", ".join(known)
        raise BadAttributeError(f"unsupported key: {name:.80}; allowed: {allowed}")
    if not created and not attribute.changeable:
        raise BadAttributeError(
            f"attempt to update an unchangeable attribute. key: {name}; allowed: "
            "at creation"
        )
    if value is not None and (complaint := attribute.complaint(value)):
        raise BadAttributeError(f"{complaint}; {name} is {value!r:.80}")
