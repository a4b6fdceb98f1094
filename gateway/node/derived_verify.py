"""Holding the derived stores of a data directory against the log beside them.

A store that is ahead has followed a log that was longer: the log was restored from a
backup, or lost its end to a power cut. The next start makes the store again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.common.reasons import reason_at
from ropeway.gateway.node import names
from ropeway.gateway.node.derived_store import ends_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SOURCES = {"pop": names.POP_TOPIC, "timer": names.TIMER_TOPIC}
"""Where stores with one source are; lite topics name theirs."""
_LITE = "lite"


def verify(data: Path, ends: Mapping[tuple[str, int], int]) -> list[str]:
    """Say which stores will be made again, a line for each.

    Args:
        data: The data directory of a node that does not run.
        ends: Where each partition of its log ends, by topic and number.
    """
    found = []
    for name in (*_SOURCES, _LITE):
        directory = data / name
        if not directory.is_dir():
            continue
        try:
            for source, next_offset in ends_of(directory).items():
                found += _ahead(directory, _topic(name, source), next_offset, ends)
        except OSError as error:
            found.append(f"{reason_at(error)}; it is made again from the log")
    return found


def _topic(name: str, source: bytes) -> str:
    return _SOURCES.get(name) or source.partition(b"\x00")[0].decode()


def _ahead(
    directory: Path, topic: str, next_offset: int, ends: Mapping[tuple[str, int], int]
) -> list[str]:
    # Which partition a queue of lite topics is the routes say: the longest one counts.
    end = max((end for (name, _), end in ends.items() if name == topic), default=0)
    if next_offset <= end:
        return []
    text = (
        f"{directory} is ahead of the log: it has followed {topic} to {next_offset}, "
        f"and the log ends at {end}; it is made again from the log"
    )
    return [text]
