"""A request that waits for messages: woken, judged again, timed out, and answered.

Pulls, pops and notifications wait in this way; they say what to look for, and what to
answer when the time is up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.creations import maker_of
from ropeway.gateway.node.long_polling import ANY_QUEUE, Waiter
from ropeway.gateway.processors.context import Answer, Context, Later
from ropeway.gateway.processors.reauthorize import judge_again
from ropeway.gateway.wire.header import Header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ropeway.common.eager import Eventual
    from ropeway.gateway.node.long_polling import Key, LongPolling
    from ropeway.gateway.processors.registry import Result
    from ropeway.storage.api import Partition

    Found = Header | Answer | Awaitable[Result]
    """What ends the wait: an answer, or what leads to one, or to another wait."""


class LongPoll(Waiter):
    """One waiting request.

    Args:
        context: The request.
        look: What to answer now; None where it waits on.
        over: What to answer when its time is up.
        queue_id: Which queue it waits for; below 0 any.
        takes: Whether nobody behind it finds what it does not.
    """

    __slots__ = ("_context", "_look", "_over", "_polling")

    def __init__(
        self,
        context: Context,
        look: Callable[[], Found | None],
        over: Callable[[], Found],
        queue_id: int = ANY_QUEUE,
        *,
        takes: bool = False,
    ) -> None:
        whose = maker_of(context.principal, context.peer.source)
        super().__init__(context.peer, whose, queue_id, takes=takes)
        self._context = context
        self._look = look
        self._over = over

    def wait(
        self,
        polling: LongPolling[Key],
        key: Key,
        partitions: Sequence[Partition],
        timeout_ms: int,
    ) -> bool:
        """Wait; False where too many do already, or the client has gone.

        Args:
            polling: Where requests of its kind wait.
            key: What it waits for.
            partitions: Where that comes.
            timeout_ms: How long it waits at most.
        """
        context, peer = self._context, self._context.peer
        if peer.closed or not polling.add(key, partitions, self, timeout_ms):
            return False
        self._polling = polling
        peer.hold()
        if context.node.guard is not None:
            context.node.reauthorization.add(self, context.rule_changes)
        # How long it waits from here on is not ours to answer for.
        context.came_s = 0.0
        return True

    def wake(self) -> bool:
        """There may be something: answer if there is, and take nothing for nobody."""
        return self._context.peer.closed or self._answer(self._look)

    def expire(self) -> None:
        """Answer, as the time is up."""
        self._answer(self._over)

    def judge(self) -> Eventual[None]:
        """See whether it may wait on."""
        return judge_again(self._context, self._leave)

    def _leave(self) -> bool:
        if not self._polling.leave(self):
            return False
        self._context.peer.unhold()
        return True

    def _answer(self, find: Callable[[], Found | None]) -> bool:
        """Answer with what is found, now or when it is read; False: with nothing."""
        context = self._context
        try:
            found = find()
            if found is None:
                return False
        except Exception as error:  # noqa: BLE001 - turned into an answer
            context.peer.unhold()
            context.fail(error)
            return True
        context.peer.unhold()
        try:
            if isinstance(found, (Header, Answer)):
                context.answer(found)
            else:
                context.spawn(_answer_later(context, found))
        except Exception as error:  # noqa: BLE001 - turned into an answer
            context.fail(error)
        return True


async def _answer_later(context: Context, reading: Awaitable[Result]) -> None:
    found = await reading
    if not isinstance(found, Later):
        context.answer(found)
