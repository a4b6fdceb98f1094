"""Finds the processor of a request and sees to it that every request is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gateway.processors.context import LATER, Answer, Context, Later, request_name
from gateway.processors.unsupported import REASONS
from gateway.wire.codes import ONE_WAY_FLAG, ResponseCode
from gateway.wire.header import ROWS, Header, decode_request, row_of

if TYPE_CHECKING:
    from gateway.node.node import Node
    from gateway.processors.context import Peer
    from gateway.wire.frame import Envelope

H = TypeVar("H", bound=Header)
Result = Header | Answer | Later
Processor = Callable[[Any, Context], Result | Awaitable[Result]]
P = TypeVar("P", bound=Processor)

PROCESSORS: dict[int, Processor] = {}
"""Every processor by the code that it handles."""


def handles(header: type[Header]) -> Callable[[P], P]:
    """Make a function the processor of the command that a header declared."""
    code = row_of(header).code

    def register(processor: P) -> P:
        if code in PROCESSORS:
            raise ValueError(f"{code.name} has two processors")
        PROCESSORS[code] = processor
        return processor

    return register


def dispatch(node: Node, peer: Peer, envelope: Envelope, body: bytes) -> None:
    """Work on one request; its answer goes to the peer now or later, always."""
    code = envelope.code
    context = Context(
        node,
        peer,
        code,
        envelope.opaque,
        bool(envelope.flag & ONE_WAY_FLAG),
        body,
    )
    processor = PROCESSORS.get(code)
    if processor is None:
        remark = f"request type {request_name(code)} not supported"
        if reason := REASONS.get(code):
            remark = f"{remark}: {reason}"
        context.refuse(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        return
    try:
        header = decode_request(ROWS[code], envelope.ext_fields)
        result = processor(header, context)
        if result is LATER:
            return
        if isinstance(result, (Header, Answer)):
            context.answer(result)
        else:
            node.spawn(_wait(context, result))
    except Exception as error:  # noqa: BLE001 - turned into an answer
        context.fail(error)


async def _wait(context: Context, result: Awaitable[Result]) -> None:
    try:
        outcome = await result
        if isinstance(outcome, (Header, Answer)):
            context.answer(outcome)
    except Exception as error:  # noqa: BLE001 - turned into an answer
        context.fail(error)
