"""A node holds its broker's partitions while it leads, and not longer."""

from __future__ import annotations

from gateway.node.held import Held
from tests.remoting import looped


class Log:
    def __init__(self) -> None:
        self.book: list[str] = []

    def open_early(self) -> None:
        self.book.append("open")

    async def release(self) -> None:
        self.book.append("release")


@looped
async def test_partitions_are_opened_by_a_leader_and_released_after():
    log = Log()
    held = Held(log)
    await held.take_over()
    assert log.book == ["open"]
    await held.give_up()
    await held.give_up()
    assert log.book == ["open", "release", "release"]
