"""Pops, and what is done by their receipts, at the brokers of a migration's source.

gRPC clients stay with this cluster, whatever topics they have: what names a broker of
the source is asked there, by this node. Remoting clients are led there instead.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ropeway.client.errors import RemotingError
from ropeway.gateway.processors.context import Answer, Refusal
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.pop import PopMessage
from ropeway.gateway.wire.header import row_of
from ropeway.routing.api import SENT_BACK

if TYPE_CHECKING:
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.processors.context import Context
    from ropeway.gateway.wire.header import Header
    from ropeway.routing.api import Topic

ASKED_THERE = frozenset(
    {
        RequestCode.POP_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    }
)
"""Codes of requests that may be for a broker of the source."""
_MOVING_POLL_MS = 1_000
"""How long a pop waits at the source while its topic is about to move: one that waits
on after that would get what a rollback sends back, a second time."""


def is_of_source(broker: str | None, node: Node) -> bool:
    """Whether a broker's name is one of the source's, as far as this node knows."""
    return (
        node.source is not None
        and bool(broker)
        and broker != node.config.broker
        and broker not in node.routes.brokers
    )


async def ask_there(header: Header, context: Context) -> Answer:
    """Have the source's broker that a request names work on it.

    Raises:
        Refusal: It did not answer.
        SourceError: Nobody says where it is.
    """
    source = context.node.source
    assert source is not None, "a broker of it is named"
    if isinstance(header, PopMessage):
        topic = context.node.routes.topics.get(header.topic)
        if topic is not None and not topic.is_at_source:
            poll_ms = min(header.poll_time, _MOVING_POLL_MS)
            if _has_moved(topic):
                # The client has not looked since.
                await asyncio.sleep(poll_ms / 1000)
                return Answer(
                    ResponseCode.POLLING_TIMEOUT, f"topic {topic.name} has moved here"
                )
            header = replace(header, poll_time=poll_ms)
    wait_ms = getattr(header, "poll_time", 0)
    try:
        answer = await source.ask(getattr(header, "bname", ""), header, wait_ms / 1000)
        is_done = answer.code == ResponseCode.SUCCESS
        said = answer.header(row_of(type(header)).reply) if is_done else None
    except RemotingError as error:
        raise Refusal(
            ResponseCode.SERVICE_NOT_AVAILABLE, f"the migration's source: {error}"
        ) from error
    return Answer(answer.code, answer.remark, said, body=answer.body)


def _has_moved(topic: Topic) -> bool:
    """Whether consumers have a topic here, and not at the source."""
    return not topic.mirrored or topic.writes == SENT_BACK
