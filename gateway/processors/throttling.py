"""Sends and reads where a quota of a topic or a group limits them.

A send is worked on when it comes, and counted; then its connection is not read until
the topic's account is even. A read waits for its turn before it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.node.quotas import Turn
from gateway.pop.taking import MAX_BYTES, Taken
from gateway.processors.dispatch import Interruptible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.pop.taking import Wanted
    from gateway.processors.context import Context
    from storage.api import Chunk

FORWARDED_S = 2.0
"""So long a send waits at most that another node sent on: clients wait for 3 s."""
LONGEST_S = 15.0
"""So long a read waits at most: brokerSuspendMaxTimeMillis of Java's consumers, who
give up after 30 s. Then it is answered without messages, and its client asks again."""
USUAL_S = 5.0
"""The same, of clients that do not say how long they wait; Java's do for 10 s."""


def charge_send(context: Context, topic: str) -> None:
    """Count a send that is worked on; if it is too much, hold its connection back."""
    account = context.node.quotas.sends.get(topic)
    if account is None:
        return
    held, size_bytes = context.peer.to_hold_back(), len(context.body)
    if held is None:
        account.take(1, size_bytes)
    else:
        account.charge(held, 1, size_bytes)


def is_late(context: Context, topic: str) -> bool:
    """Whether a send has to wait itself, since nobody can be held back for it.

    The connection that it came on is another node's, and has other clients' requests.
    """
    account = context.node.quotas.sends.get(topic)
    return account is not None and context.peer.forwarded and account.overdrawn


async def wait_to_send(context: Context, topic: str) -> None:
    """Let a send wait until the topic's account is even, or nearly so long."""
    account = context.node.quotas.sends.get(topic)
    if account is not None:
        account.throttled += 1
        await account.even(FORWARDED_S)
        account.pass_on()


async def read_in_turn(
    context: Context,
    group: str,
    topic: str,
    most_bytes: int,
    timeout_ms: int,
    still: Callable[[], bool],
    read_now: Callable[[], Chunk | None],
    read: Callable[[], Awaitable[Chunk]],
) -> Chunk | None:
    """Read when quotas let it.

    Args:
        context: The request.
        group: Who reads.
        topic: What.
        most_bytes: What the read may bring.
        timeout_ms: How long its client waits for messages; 0: it did not say.
        still: Whether it is still to be done, when its turn comes.
        read_now: Reads what is in memory; None where more is needed.
        read: Reads wherever it is.

    Returns:
        What was read; None where the request is to be answered without messages.
    """
    cold = False
    while True:
        turn = await turn_to_read(
            context, group, topic, most_bytes, timeout_ms, still, cold=cold
        )
        if turn is None:
            return None
        with turn:
            chunk = read_now()
            if chunk is None and not cold and context.node.quotas.limits_cold(group):
                cold = True
                continue
            if chunk is None:
                chunk = await read()
            turn.size_bytes = sum(map(len, chunk.data))
        return chunk


async def turn_to_read(
    context: Context,
    group: str,
    topic: str,
    most_bytes: int,
    timeout_ms: int,
    still: Callable[[], bool],
    *,
    cold: bool,
) -> Turn | None:
    """Let a read wait for its turn; it does not count as being worked on.

    Args:
        context: The request.
        group: Who reads.
        topic: What.
        most_bytes: What it may bring.
        timeout_ms: How long its client waits for messages; 0: it did not say.
        still: Whether it is still to be done, when its turn comes.
        cold: Whether it needs more than memory.

    Returns:
        Its turn; None where it is to be answered without messages.
    """
    if not context.node.quotas.limits_reads:
        return Turn([], 0)
    peer = context.peer
    # How long it waits is not ours to answer for.
    context.came_s = 0.0
    wait_s = min(timeout_ms / 1000, LONGEST_S) if timeout_ms > 0 else USUAL_S
    peer.hold()
    try:
        with Interruptible(context):
            turn = await context.node.quotas.turn(
                group, topic, most_bytes, wait_s, cold=cold
            )
    finally:
        peer.unhold()
    if turn is not None and (peer.closed or not still()):
        with turn:
            return None
    return turn


async def pop_in_turn(
    context: Context, wanted: Wanted, timeout_ms: int, still: Callable[[], bool]
) -> Taken | None:
    """Hand messages out when quotas let it.

    Args:
        context: The request.
        wanted: What it asks for.
        timeout_ms: How long its client waits for messages.
        still: Whether it is still to be done, when its turn comes.

    Returns:
        What was taken; None where the request is to be answered without messages.
    """
    node, cold = context.node, False
    while True:
        turn = await turn_to_read(
            *(context, wanted.group, wanted.topic, MAX_BYTES, timeout_ms, still),
            cold=cold,
        )
        if turn is None:
            return None
        with turn:
            from_memory = not cold and node.quotas.limits_cold(wanted.group)
            taken = node.pop.giving.pop(wanted, from_memory=from_memory)
            if not isinstance(taken, Taken):
                async with node.disk_reads:
                    taken = await taken
            turn.size_bytes = taken.size_bytes
        if taken.count or not taken.cold:
            return taken
        cold = True
