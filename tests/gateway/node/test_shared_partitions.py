"""A node holds its broker's topics while it leads, and follows them otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from ropeway.gateway.node.shared_partitions import Held
from ropeway.storage.offset_table import OffsetTable
from tests.remoting import looped

if TYPE_CHECKING:
    from ropeway.storage.offsets import Furthest


class Book:
    """Parts of a node that note what they are told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def part(self, name: str, *calls: str) -> object:
        async def note(call: str) -> None:
            self.lines.append(f"{name}.{call}")

        made = {call: lambda call=call: note(call) for call in calls}
        return type(name, (), {key: staticmethod(value) for key, value in made.items()})


class Log:
    def __init__(self, book: Book) -> None:
        self._book = book

    async def lead(self) -> None:
        self._book.lines.append("log.lead")

    def open_early(self) -> None:
        self._book.lines.append("log.open_early")

    async def follow(self) -> None:
        self._book.lines.append("log.follow")

    def compare_with(self, furthest: Furthest) -> None:
        self.furthest = furthest


@looped
async def test_partitions_are_taken_by_a_leader_and_followed_by_a_slave():
    book = Book()
    topics = book.part("topics", "take_over", "give_up", "follow")
    held = Held(Log(book), topics, book.part("holds", "give_up"), OffsetTable())
    await held.take_over()
    # Pulls that wait are answered while they still can be.
    assert book.lines == [
        *("holds.give_up", "log.lead", "topics.take_over", "log.open_early"),
    ]
    book.lines.clear()
    for _ in range(2):
        await held.give_up()
    # Nothing is opened as a writer's between the first and the second.
    assert book.lines == ["topics.give_up", "log.follow", "topics.follow"] * 2


def test_the_log_is_told_how_far_groups_have_come_by_partition():
    """A queue's number counts this broker's queues, a partition's all brokers'."""
    log, offsets = Log(Book()), OffsetTable()
    partitions = [SimpleNamespace(number=number) for number in (4, 5)]
    topics = {"orders": SimpleNamespace(partitions=partitions)}
    Held(log, topics, None, offsets)
    offsets._set("g", "orders", 1, 7)
    assert log.furthest("orders", 5) == (7, "g")
    for place in (("orders", 4), ("orders", 1), ("others", 5)):
        assert log.furthest(*place) is None
