"""Sends and reads where a quota of a topic or a group limits them.

A send is worked on when it comes, and counted; then its connection is not read until
the topic's account is even. A read waits for a permit before it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ropeway.gateway.node.quotas import Permit
from ropeway.gateway.processors.reauthorize import Interruptible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.gateway.processors.context import Context

T = TypeVar("T")

FORWARDED_S = 2.0
"""So long a send waits at most that another node sent on: clients wait for 3 s."""
LONGEST_S = 15.0
"""So long a read waits at most: brokerSuspendMaxTimeMillis of Java's consumers, who
give up after 30 s. Then it is answered without messages, and its client asks again."""
USUAL_S = 5.0
"""The same, of clients that do not say how long they wait; Java's do for 10 s."""


def charge_send(context: Context, topic: str) -> None:
    """Count a send that is worked on; if it is too much, hold its connection back.

    It is counted once, also where it is begun again.
    """
    account = context.node.quotas.sends.get(topic)
    if account is None or context.charged:
        return
    context.charged = True
    held, size_bytes = context.peer.to_hold_back(), len(context.body)
    if held is None:
        account.take(1, size_bytes)
    else:
        account.charge(held, 1, size_bytes)


def has_to_wait(context: Context, topic: str) -> bool:
    """Whether a send has to wait itself, since nobody can be held back for it.

    The connection that it came on is another node's, and has other clients' requests.
    """
    account = context.node.quotas.sends.get(topic)
    if account is None or context.charged:
        return False
    return context.peer.forwarded and account.overdrawn


async def wait_to_send(context: Context, topic: str) -> None:
    """Let a send wait until the topic's account is even, or nearly so long.

    Who may not send any more meanwhile is refused.
    """
    account = context.node.quotas.sends.get(topic)
    if account is not None:
        account.throttled += 1
        with Interruptible(context):
            await account.wait_until_even(FORWARDED_S)
        account.pass_on()


class LimitedRead(NamedTuple):
    """A read that quotas of its topic and its group may delay."""

    context: Context
    group: str
    topic: str
    most_bytes: int
    """What it may bring."""
    timeout_ms: int
    """How long its client waits for messages; 0: it did not say."""
    still: Callable[[], bool]
    """Whether it is still to be done, once it has its permit."""

    async def acquire(self, *, cold: bool) -> Permit | None:
        """Wait for a permit; meanwhile the request does not count as being worked on.

        Args:
            cold: Whether it needs more than memory.

        Returns:
            The permit; None where the request is to be answered without messages.
        """
        quotas, peer = self.context.node.quotas, self.context.peer
        if not quotas.limits_reads:
            return Permit([], 0)
        # How long it waits is no latency of the server's.
        self.context.came_s = 0.0
        given_s = self.timeout_ms / 1000
        wait_s = min(given_s, LONGEST_S) if given_s > 0 else USUAL_S
        peer.hold()
        try:
            with Interruptible(self.context):
                permit = await quotas.acquire(
                    self.group, self.topic, self.most_bytes, wait_s, cold=cold
                )
        finally:
            peer.unhold()
        if permit is not None and (peer.closed or not self.still()):
            with permit:
                return None
        return permit


async def read_throttled(
    limited: LimitedRead, read: Callable[[bool], Awaitable[tuple[T | None, int]]]
) -> T | None:
    """Read when quotas let it.

    Args:
        limited: The read.
        read: Reads, from memory alone where it is told so. It returns what it has
            found, or None where that is not in memory, and of how many bytes that is.

    Returns:
        What was found; None where the request is to be answered without messages.
    """
    quotas, cold = limited.context.node.quotas, False
    while True:
        permit = await limited.acquire(cold=cold)
        if permit is None:
            return None
        with permit:
            from_memory = not cold and quotas.limits_cold(limited.group)
            found, permit.size_bytes = await read(from_memory)
        if found is not None:
            return found
        cold = True
