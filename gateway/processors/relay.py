"""Asking a client that produces, on whichever node of the cluster it is connected.

Clients of RocketMQ are found only by the broker that has their connection. Here a node
asks the others for one that it does not have, and remembers where it was.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ropeway.gateway.node.calls import ClientAnswer, NoAnswerError
from ropeway.gateway.node.forwarder import ForwardingError
from ropeway.gateway.node.reply_to import ReplyTo
from ropeway.gateway.processors.callbacks import ask, request_frame
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import NODES
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.forward import Relay
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import (
    FrameReader,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import to_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.node.link import Link
    from ropeway.gateway.wire.header import Header

_ASKED_AT_A_TIME = 32
"""Nodes that are asked together for a client: a cluster of most sizes at once, and no
flood of requests in a large one because somebody answers a client that has gone."""
_LOCATE_S = 3.0
"""How long the nodes that run have to say whether they have a client."""


class NotConnectedError(Exception):
    """No node has the client."""


async def ask_producer(
    context: Context, to: ReplyTo, request: Header, body: bytes
) -> ClientAnswer:
    """Ask a client something, wherever it is connected.

    Args:
        context: The request on whose behalf.
        to: The client.
        request: What is asked.
        body: What follows the header.

    Raises:
        NotConnectedError: The client is connected to no node.
        NoAnswerError: It is, or was, and did not answer.
    """
    clients = context.node.clients
    if link := _find(context, to):
        return await ask(context.node.calls, link, request, body)
    frame = request_frame(request, body, 0)
    if address := clients.find_elsewhere(to.client_id):
        with suppress(NoAnswerError):
            if answer := await _relay(context, address, to, frame):
                return answer
        clients.found_elsewhere(to.client_id, None)
    address = await _locate(context, to)
    if address is None:
        raise NotConnectedError
    answer = await _relay(context, address, to, frame)
    if answer is None:
        raise NotConnectedError
    clients.found_elsewhere(to.client_id, address)
    return answer


def _find(context: Context, to: ReplyTo) -> Link | None:
    """The client's connection to this node, if it is the owner's."""
    clients = context.node.clients
    addresses = context.node.reply_to
    if addresses is not None and to.owner is not None:
        principal = clients.owners.of(to.client_id)
        if principal is None or addresses.owner(principal) != to.owner:
            return None
    return clients.find_producer(to.client_id)


async def _locate(context: Context, to: ReplyTo) -> str | None:
    """Which other node has the client."""

    async def has_it(address: str) -> bool:
        try:
            async with asyncio.timeout(_LOCATE_S):
                answer = await _relay(context, address, to, b"")
        except (NoAnswerError, TimeoutError):
            return False
        return answer is not None

    others = list(_others(context))
    for start in range(0, len(others), _ASKED_AT_A_TIME):
        addresses = others[start : start + _ASKED_AT_A_TIME]
        found = await asyncio.gather(*map(has_it, addresses))
        if True in found:
            return addresses[found.index(True)]
    return None


def _others(context: Context) -> Iterator[str]:
    """The addresses of the other nodes, slaves among them."""
    ours = context.peer.advertised
    for nodes in context.node.routes.brokers.values():
        for one in nodes:
            if ours not in one.addresses:
                yield one.addresses[0]


async def _relay(
    context: Context, address: str, to: ReplyTo, frame: bytes
) -> ClientAnswer | None:
    """Ask by way of another node; None where it does not have the client."""
    question = encode_frame(
        RequestCode.ROPEWAY_RELAY,
        0,
        fields=to_fields(Relay(client_id=to.client_id, owner=to.owner)),
        body=frame,
    )
    try:
        data = await context.node.forwarder.forward(
            address, question, context.peer.address
        )
        (answer,) = FrameReader(context.node.config.limits.frame_bytes).feed(data)
        envelope = decode_envelope(answer.serialize_type, answer.header)
    except (ForwardingError, FrameError, ValueError) as error:
        raise NoAnswerError(str(error)) from error
    if envelope.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    return ClientAnswer(envelope.code, envelope.remark, answer.body)


@handles(Relay, NODES, anywhere=True)
async def relay(request: Relay, context: Context) -> Answer:
    """Hand a request of another node to a client of this one."""
    node = context.node
    link = _find(context, ReplyTo(request.client_id, request.owner))
    if link is None:
        raise Refusal(
            ResponseCode.QUERY_NOT_FOUND, f"no client {request.client_id:.200} here"
        )
    if not context.body:
        return Answer()
    try:
        (frame,) = FrameReader(node.config.limits.frame_bytes).feed(context.body)
        envelope = decode_envelope(frame.serialize_type, frame.header)
    except (FrameError, ValueError) as error:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"body of {len(context.body)} bytes; allowed: one whole request",
        ) from error

    def with_opaque(opaque: int) -> bytes:
        return encode_frame(
            envelope.code,
            opaque,
            fields=envelope.ext_fields,
            body=frame.body,
        )

    try:
        answer = await node.calls.ask(link, with_opaque)
    except NoAnswerError as error:
        raise Refusal(ResponseCode.SYSTEM_ERROR, str(error)) from error
    return Answer(answer.code, answer.remark, body=answer.body)
