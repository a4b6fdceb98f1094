"""What stands in ZooKeeper's nodes, and how they are named; FORMAT.md shows it."""

from __future__ import annotations

from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from ropeway.routing.api import Broker, Group, Topic

MOST_PARTITIONS = 1024

Kind = Literal["topics", "groups", "settings"]
"""What is followed by way of the list of changes; also the name of the folder."""
KINDS: tuple[Kind, ...] = ("topics", "groups", "settings")
Value: TypeAlias = Topic | Group | str

_EMPTY = "%"
"""Stands for a name without characters; else a % has two digits after it."""
_DOTS = {".": "%2E", "..": "%2E%2E"}
_TYPES: dict[Kind, type[Value]] = {"topics": Topic, "groups": Group, "settings": str}
_PARTS: dict[Kind, int] = {"topics": 1, "groups": 1, "settings": 2}


class DamagedError(Exception):
    """A node does not hold what it should; the text says what it holds."""


class Announcement(Struct, frozen=True, order=True):
    """A node of a broker as it stands in the broker's folder."""

    sequence: int
    node: str
    path: str
    """Its name there."""


# Names.


def node_name(*parts: str) -> str:
    """A node's name: what stands for each part, with commas in between."""
    return ",".join(_quoted(part) for part in parts)


def parts_of(name: str) -> tuple[str, ...]:
    """The parts that a node's name was made of.

    Raises:
        DamagedError: It was not made so.
    """
    parts = tuple(
        "" if part == _EMPTY else unquote(part, errors="replace")
        for part in name.split(",")
    )
    if node_name(*parts) != name:
        raise DamagedError(f"nothing has the name {name!r}")
    return parts


def _quoted(part: str) -> str:
    return _DOTS.get(part) or quote(part, safe="") or _EMPTY


def is_name(node: str) -> bool:
    """Whether a node is named for one topic, group or broker."""
    try:
        return len(parts_of(node)) == 1
    except DamagedError:
        return False


def name_of(node: str) -> str:
    """The name of the topic or group of a node."""
    (name,) = parts_of(node)
    return name


def setting_of(node: str) -> tuple[str, str]:
    """The namespace and the key of the setting of a node."""
    namespace, key = parts_of(node)
    return namespace, key


def change_prefix(kind: Kind, node: str, change_id: str) -> str:
    """A node's name in the list of changes, but for the number ZooKeeper adds."""
    return node_name(kind, node, change_id) + ","


def number_of(name: str) -> int:
    """The number that ZooKeeper added to a name; -1 where there is none."""
    number = name.rpartition(",")[2]
    return int(number) if number.isdecimal() else -1


def parse_change(name: str) -> tuple[Kind, str] | None:
    """What a change in the list of changes was of; None for what we know nothing of."""
    try:
        kind, node, _, _ = parts_of(name)
    except (DamagedError, ValueError):
        return None
    return next(((one, node) for one in KINDS if one == kind), None)


def parse_announcement(name: str) -> Announcement | None:
    """A node of a broker from its name in the folder; None where it is none."""
    try:
        node, _ = parts_of(name)
    except (DamagedError, ValueError):
        return None
    number = number_of(name)
    return None if number < 0 else Announcement(number, node, name)


# Contents.


def dump(value: Value | Broker) -> bytes:
    """What a node of a topic, group, setting or broker holds."""
    return msgspec.json.encode(value)


def load(kind: Kind, node: str, data: bytes) -> Value:
    """What a node holds.

    Raises:
        DamagedError: It does not hold the topic, group or setting that it is named for.
    """
    parts = parts_of(node)
    if len(parts) != _PARTS[kind]:
        raise DamagedError(f"its name has {len(parts)} parts; allowed: {_PARTS[kind]}")
    try:
        value = msgspec.json.decode(data, type=_TYPES[kind])
    except msgspec.DecodeError as error:
        raise DamagedError(str(error)) from error
    if isinstance(value, Topic | Group) and value.name != parts[0]:
        raise DamagedError(f"it holds {value.name!r}")
    if isinstance(value, Topic):
        _check_route(value)
    return value


def load_broker(data: bytes) -> Broker:
    """The node of a broker that was announced.

    Raises:
        DamagedError: None was.
    """
    try:
        return msgspec.json.decode(data, type=Broker)
    except msgspec.DecodeError as error:
        raise DamagedError(str(error)) from error


def _check_route(topic: Topic) -> None:
    """A queue that shares a partition with another would get the other's messages."""
    numbers = [number for queues in topic.route.values() for number in queues]
    if wrong := [n for n in numbers if not 0 <= n < MOST_PARTITIONS]:
        raise DamagedError(
            f"partition {wrong[0]} in the route; allowed: 0 to {MOST_PARTITIONS - 1}"
        )
    if len(set(numbers)) < len(numbers):
        twice = next(n for n in numbers if numbers.count(n) > 1)
        raise DamagedError(f"partition {twice} is in the route twice")
