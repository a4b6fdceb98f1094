"""Offsets, routes and RocksDB before their power is cut, and what has to be there.

Each changes something again and again, to the number N. A mark `done N` promises that
what is found later is N or newer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client import MessageQueue
from ropeway.client.offsets import FileOffsets
from ropeway.gateway.cli import context_file
from ropeway.gateway.node import rocks
from ropeway.gateway.pop.store import Store, key_of, value_of
from ropeway.routing.api import Topic
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage.directories import make_directory
from ropeway.storage.file import open_offsets
from tests.power.recorded import mark

if TYPE_CHECKING:
    from pathlib import Path

CHANGES = 10
QUEUE = MessageQueue("orders", "b", 0)


def _done(marks: list[str]) -> int:
    return max((int(one.removeprefix("done ")) for one in marks), default=0)


async def commits(directory: Path) -> None:
    """Commit offsets of the embedded log; a flush is a promise."""
    offsets = open_offsets(directory / "data" / "log", flush_interval_ms=3_600_000)
    for number in range(1, CHANGES + 1):
        offsets.commit("readers", "orders", 0, number)
        offsets.commit("readers", "orders", number, number)
        await offsets.flush()
        mark(f"done {number}")
    await offsets.close()


def check_commits(directory: Path, marks: list[str]) -> None:
    """All commits up to a number are there, or up to a later one."""

    async def main() -> None:
        offsets = open_offsets(directory / "data" / "log")
        try:
            newest = offsets.get("readers", "orders", 0) or 0
            assert newest >= _done(marks)
            for number in range(1, newest + 1):
                assert offsets.get("readers", "orders", number) == number
        finally:
            await offsets.close()

    asyncio.run(main())


async def routes(directory: Path) -> None:
    """Make topics and settings; each is a promise."""
    make_directory(directory / "data")  # as the gateway does
    store = EmbeddedRoutes(directory / "data" / "routes.db")
    for number in range(1, CHANGES + 1):
        topic = Topic(name="orders", read_queue_nums=number, write_queue_nums=1)
        await store.change_topic("orders", lambda _, topic=topic: topic)
        mark(f"done {number}")
    await store.close()


def check_routes(directory: Path, marks: list[str]) -> None:
    """The topic is as it was made last."""

    async def main() -> None:
        make_directory(directory / "data")
        store = EmbeddedRoutes(directory / "data" / "routes.db")
        try:
            topic = store.topics.get("orders")
            assert (topic.read_queue_nums if topic else 0) >= _done(marks)
        finally:
            await store.close()

    asyncio.run(main())


async def client_offsets(directory: Path) -> None:
    """Store a broadcasting consumer's offsets."""
    offsets = FileOffsets(directory / "home" / "group.json")
    for number in range(1, CHANGES + 1):
        offsets.update(QUEUE, number)
        await offsets.store_all()


def check_client_offsets(directory: Path, marks: list[str]) -> None:
    """The file is whole, or not there: an older offset only repeats messages."""
    del marks
    offsets = FileOffsets(directory / "home" / "group.json")
    assert (asyncio.run(offsets.read(QUEUE)) or 0) in range(CHANGES + 1)


async def contexts(directory: Path) -> None:
    """Save a user's contexts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(directory / "home"))
        for number in range(1, CHANGES + 1):
            context = context_file.Context(name_server=f"host:{number}")
            context_file.save(context_file.Contexts("work", {"work": context}))


def check_contexts(directory: Path, marks: list[str]) -> None:
    """The file is whole, or not there: an older one has what was saved before."""
    del marks
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(directory / "home"))
        found = context_file.load().contexts
    names = {f"host:{number}" for number in range(1, CHANGES + 1)}
    assert {one.name_server for one in found.values()} <= names


class SmallStore(Store):
    """Writes its memory to files after some changes."""

    MEMORY_BYTES = 1 << 16


async def in_flight(directory: Path) -> None:
    """Note what is in flight; no promise, for it can be read from the log again."""
    store = SmallStore.open(directory / "pop")
    for number in range(1, CHANGES + 1):
        store.apply(_changes(number), (number, 0))
    store.close()


def _changes(number: int) -> list[tuple[bytes, bytes]]:
    """Batches that come, and those of the number before, which go."""
    offsets = list(range(1500))
    place = "readers", "orders", 0
    keys = [key_of(place, start, number, number) for start in range(2)]
    gone = [key_of(place, start, number - 1, number - 1) for start in range(2)]
    return [
        *((key, value_of(0, 1, offsets)) for key in keys),
        *((key, b"") for key in gone),
    ]


def check_in_flight(directory: Path, marks: list[str]) -> None:
    """What is there is all that had been noted when the log was read to some offset."""
    del marks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rocks, "boot_id", lambda: "the one after the power cut")
        store = SmallStore.open(directory / "pop")
    try:
        number, _ = store.checkpoint() or (0, 0)
        wanted = [one for one in _changes(number) if one[1]] if number else []
        assert store.due(0, 1 << 40, 100) == wanted
    finally:
        store.close()
