"""Requests that wait until it is known who leads the broker, in each client's order.

Who waits for the same is told one after the other, each a few passes of the loop later.
What comes in that time, or finds that everything is known, must not overtake them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Turn:
    """The place of one request among those of its client."""

    def __init__(self) -> None:
        self.go_on: Callable[[], None] | None = None
        """What it does once those before it have; None while it waits itself."""


class LeaderlessRequests:
    """The requests of each client that wait until it is known who leads."""

    def __init__(self) -> None:
        self.waiting: dict[str, deque[Turn]] = {}
        """By the clients' addresses; of each there is one at least."""

    def take(self, client: str) -> Turn:
        """Wait behind all that the same client has asked, and that waits."""
        turn = Turn()
        self.waiting.setdefault(client, deque()).append(turn)
        return turn

    def end(self, client: str, turn: Turn, go_on: Callable[[], None]) -> None:
        """Wait no longer, but for those before it; what goes on must not raise.

        Args:
            client: Whose it is.
            turn: As it was taken.
            go_on: Called when those before it have gone on: now, or later.
        """
        turn.go_on = go_on
        waiting = self.waiting[client]
        # What goes on may ask whether others wait: those behind it do.
        while waiting and (next_one := waiting[0].go_on) is not None:
            waiting.popleft()
            next_one()
        if not waiting:
            del self.waiting[client]
