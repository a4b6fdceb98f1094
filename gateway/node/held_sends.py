"""Sends that wait until a topic is made or a queue is open, in the order they came in.

What is sent to the same place meanwhile waits behind them, also when the place is there
and some still wait. So what a client sends without waiting for answers is stored in its
order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from routing.api import RouteError
from storage.api import LogError, LogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

Place = str | tuple[str, int]
"""A topic that is made, or a queue of one that is opened."""


class HeldSend(NamedTuple):
    """A send that waits."""

    prepare: Callable[[], Awaitable[object]]
    """Returns when its place is there."""
    work: Callable[[], None]
    """Begins its work; it answers whatever fails then."""
    fail: Callable[[Exception], None]
    """Answers it where its place could not be prepared."""


class HeldSends:
    """The sends of a node that wait, by what they wait for."""

    def __init__(self) -> None:
        self.waiting: dict[Place, deque[HeldSend]] = {}
        """Places that somebody waits for."""

    def place_of(
        self, topic: str, queue_id: int, let_go: Place | None = None
    ) -> Place | None:
        """What a send has to wait for, behind others; None where it need not.

        Args:
            topic: Where it goes.
            queue_id: And to which queue.
            let_go: What it has waited for already.
        """
        for place in (topic, (topic, queue_id)):
            if place in self.waiting and place != let_go:
                return place
        return None

    def hold(
        self,
        place: Place,
        held: HeldSend,
        spawn: Callable[[Coroutine[None, None, None]], None],
        *,
        first: bool = False,
    ) -> None:
        """Have a send wait.

        Args:
            place: What for.
            held: The send.
            spawn: Runs the task that lets go those who wait.
            first: Put it in front of the others: it has waited there before.
        """
        waiting = self.waiting.get(place)
        if waiting is None:
            waiting = self.waiting[place] = deque()
            spawn(self._let_go(place, waiting))
        if first:
            waiting.appendleft(held)
        else:
            waiting.append(held)

    async def _let_go(self, place: Place, waiting: deque[HeldSend]) -> None:
        """Work on what waits; what comes meanwhile is still behind it."""
        try:
            while waiting:
                try:
                    await waiting[0].prepare()
                except (LogError, RouteError) as error:
                    # Each would wait for it as long as this one did.
                    _give_up(waiting, error)
                except Exception as error:  # noqa: BLE001 - turned into an answer
                    # The next one may do what this one may not.
                    waiting.popleft().fail(error)
                else:
                    waiting.popleft().work()
        finally:
            del self.waiting[place]
            _give_up(waiting, LogUnavailableError("the send was given up; try again"))


def _give_up(waiting: deque[HeldSend], error: Exception) -> None:
    while waiting:
        waiting.popleft().fail(error)
