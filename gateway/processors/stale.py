"""Sends that are too old to be stored: refused, and not sent on.

A client sends again what is not answered in time, elsewhere or here. What a node held
for longer, because it stood still or nobody led its broker, would be stored a second
time and behind messages that were sent after it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ropeway.gateway.processors.fast_failure import SENDS
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from ropeway.gateway.processors.context import Context

HELD_S = 3.0
"""How long nodes may have a send before the one that stores it begins: then its client
has sent it again. Source: DefaultMQProducer.sendMsgTimeout, RocketMQ 5.3.4."""


def refused(context: Context, *, between_nodes: bool = False) -> bool:
    """Refuse a send that is too old; whether it was.

    Args:
        context: The request.
        between_nodes: Whether it goes to another node, or has come from one. Where it
            stays, what its client sends again comes behind it.
    """
    if context.code not in SENDS:
        return False
    leadership = context.node.leadership
    if leadership.is_stale or context.since_s < leadership.went_on_s:
        context.refuse(
            ResponseCode.SYSTEM_BUSY,
            "[STALE]the broker's node stood still, and the send is of unknown age; "
            "this node has not stored it",
        )
        return True
    held_s = time.monotonic() - context.since_s
    if between_nodes and held_s > HELD_S:
        context.refuse(
            ResponseCode.SYSTEM_BUSY,
            f"[STALE]the send was held for {held_s:.1f} s; allowed between nodes: "
            f"{HELD_S:g} s; this node has not stored it",
        )
        return True
    return False
