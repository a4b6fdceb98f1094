"""Sends that wait until a topic is made or a queue is open, in the order they came in.

What is sent to the same destination meanwhile waits behind them, also when the
destination is ready and some still wait. So what a client sends without waiting for
answers is stored in its order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from ropeway.gateway.node.leaderless_requests import LeaderlessRequests
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError, LogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

Destination = str | tuple[str, int]
"""A topic that is made, or a queue of one that is opened."""


class PendingSend(NamedTuple):
    """A send that waits."""

    prepare: Callable[[], Awaitable[object]]
    """Returns when its destination is ready."""
    start: Callable[[], None]
    """Starts it; it answers whatever fails then."""
    fail: Callable[[Exception], None]
    """Answers it where its destination could not be prepared."""


class PendingSends:
    """The sends of a node that wait, by their destinations."""

    def __init__(self) -> None:
        self.waiting: dict[Destination, deque[PendingSend]] = {}
        self.leaderless = LeaderlessRequests()
        """What waits before that: until it is known who leads the broker."""

    def blocking(
        self, topic: str, queue_id: int, waited_for: Destination | None = None
    ) -> Destination | None:
        """Tell which destination a send has to wait for, behind others; None: none.

        Args:
            topic: Where it goes.
            queue_id: And to which queue.
            waited_for: The destination that it has waited for already. Who has waited
                for a queue came before all that wait for its topic still.
        """
        queue = topic, queue_id
        if topic in self.waiting and waited_for not in (topic, queue):
            return topic
        return queue if queue in self.waiting and waited_for != queue else None

    def add(
        self,
        destination: Destination,
        send: PendingSend,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        *,
        first: bool = False,
    ) -> None:
        """Have a send wait.

        Args:
            destination: What it waits for.
            send: The send.
            spawn: Runs the task that starts those who wait.
            first: Put it in front of the others: it has waited there before.
        """
        queue = self.waiting.get(destination)
        if queue is None:
            queue = self.waiting[destination] = deque()
            spawn(self._drain(destination, queue))
        if first:
            queue.appendleft(send)
        else:
            queue.append(send)

    async def _drain(self, destination: Destination, queue: deque[PendingSend]) -> None:
        """Start what waits; what comes meanwhile is still behind it."""
        try:
            while queue:
                try:
                    await queue[0].prepare()
                except (LogError, RouteError) as error:
                    # Each would wait for it as long as this one did.
                    _fail_all(queue, error)
                except Exception as error:  # noqa: BLE001 - turned into an answer
                    # The next one may do what this one may not.
                    queue.popleft().fail(error)
                else:
                    queue.popleft().start()
        finally:
            del self.waiting[destination]
            _fail_all(queue, LogUnavailableError("the send was given up; try again"))


def _fail_all(queue: deque[PendingSend], error: Exception) -> None:
    while queue:
        queue.popleft().fail(error)
