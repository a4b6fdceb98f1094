"""Files of a group's offsets: tab-separated lines, or JSON.

    topic <TAB> broker <TAB> queue_id <TAB> offset

The first line may be these names. JSON is a list of objects with the same members;
others are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.client.message import MessageQueue
from ropeway.gateway.cli.failures import MisusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("topic", "broker", "queue_id", "offset")


class Place(Struct, frozen=True):
    """Where a group goes on in a queue."""

    topic: str
    broker: str
    queue_id: int
    offset: int

    @property
    def queue(self) -> MessageQueue:
        """The queue."""
        return MessageQueue(self.topic, self.broker, self.queue_id)


def lines(places: list[Place]) -> Iterator[str]:
    """Write places as tab-separated lines, the names first."""
    yield "\t".join(NAMES)
    for one in places:
        yield "\t".join(map(str, msgspec.structs.astuple(one)))


def read(data: bytes, name: str) -> list[Place]:
    """Read a file.

    Args:
        data: What is in it.
        name: Its name, for the complaint.

    Raises:
        MisusedError: It is none, or has a queue twice.
    """
    try:
        places = _json(data) if data.lstrip()[:1] == b"[" else list(_lines(data))
    except (msgspec.DecodeError, ValueError) as error:
        raise MisusedError(
            f"{name}: {error}; allowed: lines of {', '.join(NAMES)} separated by tabs, "
            "or a JSON list of objects with these members"
        ) from error
    seen = set()
    for one in places:
        if one.queue in seen:
            raise MisusedError(
                f"{name}: queue {one.queue_id} of topic {one.topic} on broker "
                f"{one.broker} twice; allowed: once"
            )
        seen.add(one.queue)
    return places


def _json(data: bytes) -> list[Place]:
    return msgspec.json.decode(data, type=list[Place])


def _lines(data: bytes) -> Iterator[Place]:
    for number, line in enumerate(data.decode().splitlines(), 1):
        cells = tuple(line.split("\t"))
        if cells == NAMES or not line.strip():
            continue
        if len(cells) != len(NAMES):
            raise ValueError(f"line {number} has {len(cells)} cells")
        yield msgspec.convert(
            dict(zip(NAMES, cells, strict=True)), type=Place, strict=False
        )
