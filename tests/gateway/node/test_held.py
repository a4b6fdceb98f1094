"""A node holds its broker's topics while it leads, and follows them otherwise."""

from __future__ import annotations

from gateway.node.held import Held
from tests.remoting import looped


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


@looped
async def test_partitions_are_taken_by_a_leader_and_followed_by_a_slave():
    book = Book()
    topics = book.part("topics", "take_over", "give_up", "follow")
    held = Held(Log(book), topics, book.part("holds", "give_up"))
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
