"""What clients wrote down that they did with a message, in the topic of traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.wire.trace import TRACE_TOPIC, decode

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.gateway.wire.trace import Step


async def trace(
    admin: Admin, msg_id: str, *, trace_topic: str = TRACE_TOPIC
) -> list[Step]:
    """Find what clients did with a message, in the order of time.

    Args:
        admin: Asks.
        msg_id: Its id, as its producer knows it.
        trace_topic: Where clients write traces.

    Raises:
        TopicNotFoundError: No client has written a trace.
        RemotingError: A broker cannot be reached, or refused.
    """
    found = await admin.query(trace_topic, msg_id)
    steps = [
        step for one in found for step in decode(one.body) if step.msg_id == msg_id
    ]
    return sorted(steps, key=lambda step: step.time_ms or 0)
