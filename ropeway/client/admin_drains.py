"""Emptying a broker for good, and forgetting one that does not run."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_moves, admin_nodes
from ropeway.client.errors import RemotingError, ResponseError
from ropeway.gateway.wire.commands.drains import (
    BrokerRemoved,
    DrainBroker,
    DrainState,
    GetDrain,
    RemoveBroker,
)
from ropeway.gateway.wire.commands.moves import MoveQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.client.admin import Admin
    from ropeway.client.admin_moves import Move

_LOOK_TIMEOUT_S = 30.0
_LOOK_EVERY_S = 0.5
_REMOVE_TIMEOUT_S = 120.0
"""Each topic that it has something to do of is changed."""
_AWAY_S = 120.0
"""How long a broker may not answer: its next node takes over within seconds."""


class Waiting(Struct, frozen=True):
    """Nothing can move just now."""

    state: DrainState | None
    """What the broker has yet; None where it does not say."""
    trouble: str = ""
    """Why the last move was refused, or the broker does not answer."""


async def look(admin: Admin, broker: str) -> DrainState:
    """What a broker has yet that keeps it in its cluster.

    Raises:
        AdminError: There is no such broker that runs.
        ResponseError: It does not say; the remark says why.
        RemotingError: It cannot be reached.
    """
    address = await _master(admin, broker)
    answer = await admin.ask(address, GetDrain(), timeout_s=_LOOK_TIMEOUT_S)
    return answer.json(DrainState)


async def drain(admin: Admin, broker: str) -> AsyncIterator[Move | Waiting]:
    """Empty a broker, and end when nothing is left on it but what it has for itself.

    It may be broken off and begun again at any time.

    Args:
        admin: Asks.
        broker: Its name.

    Returns:
        Each queue as it has moved, and now and then what is waited for.

    Raises:
        AdminError: There is no such broker that runs.
        ResponseError: It refused; where it was not being drained, nothing has changed.
        RemotingError: It cannot be reached.
    """
    await admin.ask(await _master(admin, broker), DrainBroker())
    heard_s = time.monotonic()
    while True:
        trouble, state, moved = "", None, False
        try:
            state = await look(admin, broker)
            heard_s = time.monotonic()
            if not (state.queues or state.waiting):
                return
            trouble = "; ".join(sorted(state.stuck.values())[:3])
            for one in state.moves:
                wanted = MoveQueue(
                    topic=one.topic, to_broker=one.to_broker, partition=one.partition
                )
                try:
                    address = await _master(admin, broker)
                    yield await admin_moves.ask(admin, address, wanted)
                    moved = True
                except ResponseError as error:
                    # Others may move meanwhile.
                    trouble = str(error)
        except RemotingError as error:
            # A node that is killed in the middle of this is replaced by another.
            if time.monotonic() - heard_s > _AWAY_S:
                raise
            trouble = str(error)
        if not moved:
            yield Waiting(state, trouble)
            await asyncio.sleep(_LOOK_EVERY_S)


async def undrain(admin: Admin, broker: str) -> None:
    """Let a broker have queues again; those that have moved stay where they are.

    Raises:
        AdminError: There is no such broker that runs.
        ResponseError: It refused.
        RemotingError: It cannot be reached.
    """
    await admin.ask(await _master(admin, broker), DrainBroker(undo=True))


async def remove(admin: Admin, broker: str, *, gone: bool = False) -> BrokerRemoved:
    """Forget a broker that does not run.

    Args:
        admin: Asks.
        broker: Its name.
        gone: Also one that was not drained, because it never comes back.

    Raises:
        ResponseError: It runs, or was not drained; the remark says what to do.
        RemotingError: No node can be reached.
    """
    header = RemoveBroker(broker=broker, gone=gone)
    address, *_ = await admin.masters()
    answer = await admin.ask(address, header, timeout_s=_REMOVE_TIMEOUT_S)
    return answer.json(BrokerRemoved)


async def _master(admin: Admin, broker: str) -> str:
    master, *_ = await admin_nodes.nodes(admin, broker)
    return master.address
