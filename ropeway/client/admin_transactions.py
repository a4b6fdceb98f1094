"""Transactions that are open: RocketMQ's own brokers do not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.commands.transactions import (
    MAX_PAGE,
    HalvesPage,
    ListHalves,
    OpenHalf,
)

if TYPE_CHECKING:
    from ropeway.client.admin import Admin


async def open_transactions(
    admin: Admin,
    *,
    topic: str | None = None,
    msg_id: str | None = None,
    most: int = 100,
) -> list[OpenHalf]:
    """List messages that are neither committed nor rolled back, broker by broker.

    Args:
        admin: Asks.
        topic: Only those for it.
        msg_id: Only the one with this id of its producer.
        most: The most that each broker tells.

    Raises:
        ResponseError: A broker refused, or is RocketMQ's own.
        RemotingError: A broker cannot be reached.
    """
    found: list[OpenHalf] = []
    for address in await admin.masters():
        left, after = most, 0
        while left > 0:
            asked = ListHalves(
                max_nums=min(left, MAX_PAGE),
                topic=topic,
                unique_key=msg_id,
                after=after,
            )
            page = (await admin.ask(address, asked)).json(HalvesPage)
            found += page.transactions
            left -= len(page.transactions)
            if page.next is None:
                break
            after = page.next
    return found
