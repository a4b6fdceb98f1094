"""Work on all topics, in slices between which the event loop does other things."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sized

QUEUES_AT_ONCE = 1000
"""To serve them takes some 6 ms of CPU."""


def slices(queues: Mapping[str, Sized]) -> Iterator[list[str]]:
    """Names of topics that together have so many queues, or a little more.

    Args:
        queues: Each topic's.
    """
    names: list[str] = []
    count = 0
    for name, theirs in queues.items():
        names.append(name)
        count += len(theirs)
        if count >= QUEUES_AT_ONCE:
            yield names
            names, count = [], 0
    yield names
