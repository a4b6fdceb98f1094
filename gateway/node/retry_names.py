"""Whose messages a retry topic holds, by its name: it may have several readings.

    %RETRY%GROUP          what members of GROUP sent back
    %RETRY%GROUP_TOPIC    what GROUP popped of TOPIC and did not acknowledge (v1)
    %RETRY%GROUP+TOPIC    likewise (v2)

No group and no topic has a `+` in its name, so v2 has one reading. `_` may be anywhere:
`%RETRY%team_billing` is the group `team_billing`, or `team` with the topic `billing`.

Source: KeyBuilder.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node import names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Protocol

    from ropeway.gateway.node.groups import Groups

    class Progress(Protocol):
        """The offsets that groups have."""

        def groups_of(self, topic: str) -> Collection[str]:
            """Groups that have offsets on a topic."""

        def get(self, group: str, topic: str, queue_id: int) -> int | None:
            """How far a group is in a queue; None where it never was there."""


_QUEUE = 0
"""Pops store what comes again in one queue."""


class Reading(NamedTuple):
    """Whose messages they may be."""

    group: str
    topic: str | None = None
    """The one that was popped; None: members of the group sent them back."""


def readings(name: str, groups: Groups, offsets: Progress) -> list[Reading]:
    """Every reading of a retry topic's name that exists; at least one.

    A group has popped a topic with a v1 name where it has an offset there: `Revive`
    sees to that before it stores.
    """
    rest = name.removeprefix(names.RETRY_PREFIX)
    group, plus, topic = rest.partition("+")
    if plus:
        return [Reading(group, topic)]
    found = list(_popped(name, offsets))
    if not found or groups.get(rest) is not None:
        found.append(Reading(rest))
    return found


def _popped(name: str, offsets: Progress) -> Iterator[Reading]:
    """What a v1 name may mean of groups that were there; the shortest group first.

    They are asked for, and not the places of `_`, of which a name may have very many.
    """
    rest = name.removeprefix(names.RETRY_PREFIX)
    for group in sorted(offsets.groups_of(name), key=len):
        topic = rest.removeprefix(f"{group}_")
        if (
            group
            and topic not in (rest, "")
            and offsets.get(group, name, _QUEUE) is not None
        ):
            yield Reading(group, topic)


def is_shared(
    name: str, group: str, topic: str, groups: Groups, offsets: Progress
) -> bool:
    """Whether a v1 name holds, or will, more than what a group popped of a topic."""
    rest = name.removeprefix(names.RETRY_PREFIX)
    return groups.get(rest) is not None or any(
        one != (group, topic) for one in _popped(name, offsets)
    )
