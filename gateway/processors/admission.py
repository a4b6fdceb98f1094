"""The one place where requests are let in or not, before anybody works on them.

A request is refused with NO_PERMISSION, as RocketMQ's brokers do, and the remark says
who may not do what. Which rule says so stands in the audit log alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from acl.api import Credentials, Verdict
from gateway.node import names
from gateway.processors.context import Refusal, request_name
from gateway.processors.needs import PUB, topic_need
from gateway.wire.codes import RequestCode, ResponseCode
from gateway.wire.frame import decode_fields
from gateway.wire.signing import claims_in
from gateway.wire.unreadable import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from acl.api import Guard, Need
    from gateway.node.clients import Member
    from gateway.node.transactions.checks import Permitted
    from gateway.processors.context import Context
    from gateway.processors.needs import Needs
    from gateway.wire.frame import Envelope
    from gateway.wire.signing import Claims

_NONE = Credentials()

_decode_texts = msgspec.json.Decoder(dict[str, str]).decode


def admit(context: Context, guard: Guard, needs: Needs) -> Awaitable[None] | None:
    """Let a request in, if whoever sent it may have it done, and read its fields.

    Returns:
        None, or an awaitable where it takes time to know whether it may come in.

    Raises:
        Refusal: It may not; the awaitable raises it, too.
        HeaderError: The fields cannot be read; likewise.
    """
    verdict = _identify(context, guard)
    if not isinstance(verdict, Verdict):
        return _admit_later(context, guard, needs, verdict)
    return _permit(context, guard, needs, verdict)


async def _admit_later(
    context: Context, guard: Guard, needs: Needs, identified: Awaitable[Verdict]
) -> None:
    permitted = _permit(context, guard, needs, await identified)
    if permitted is not None:
        await permitted


def _identify(context: Context, guard: Guard) -> Verdict | Awaitable[Verdict]:
    peer = context.peer
    if peer.identified:
        return Verdict(allowed=True, principal=peer.principal)
    credentials = (
        _credentials(context.claims, context.body)
        if context.envelope is None
        else credentials_of(context.envelope, context.body)
    )
    return guard.identify(credentials, peer.source, request_name(context.code))


def _permit(
    context: Context, guard: Guard, needs: Needs, identified: Verdict
) -> Awaitable[None] | None:
    _know(context, identified)
    return _require(context, guard, needs(context.read(), context))


def _know(context: Context, identified: Verdict) -> None:
    if not identified.allowed:
        raise _refusal(identified)
    peer = context.peer
    if not peer.known:
        peer.become_known(identified.principal)
    context.principal = principal = identified.principal
    share = peer.share
    if share is not None and principal is not None and not share.is_of(principal):
        raise Refusal(
            ResponseCode.SYSTEM_BUSY,
            f"{principal.name:.128} has as many connections as its quota allows; "
            "close one of them",
        )


def _require(
    context: Context, guard: Guard, needs: tuple[Need, ...]
) -> Awaitable[None] | None:
    verdict = guard.permit(
        context.principal, needs, context.peer.source, request_name(context.code)
    )
    if not isinstance(verdict, Verdict):
        return _refuse_later(verdict)
    if not verdict.allowed:
        raise _refusal(verdict)
    return None


async def _refuse_later(verdict: Awaitable[Verdict]) -> None:
    decided = await verdict
    if not decided.allowed:
        raise _refusal(decided)


def _refusal(verdict: Verdict) -> Refusal:
    return Refusal(ResponseCode.NO_PERMISSION, verdict.remark)


def sender_check(guard: Guard | None) -> Permitted | None:
    """What says whether a producer may send to a topic now; None: all may.

    That a client says in its heartbeats that it is a producer of a group proves
    nothing: these need no permission, as with RocketMQ 5.5.
    """
    if guard is None:
        return None

    async def permitted(producer: Member, topic: str) -> bool:
        if topic.startswith(names.RETRY_PREFIX):
            # No client begins a transaction there, and who may know depends on more.
            return False
        verdict = guard.permit(
            producer.principal,
            (topic_need(topic, (PUB,)),),
            producer.link.source,
            request_name(RequestCode.CHECK_TRANSACTION_STATE),
        )
        return (verdict if isinstance(verdict, Verdict) else await verdict).allowed

    return permitted


def credentials_of(envelope: Envelope, body: bytes) -> Credentials:
    """What a request says of its sender.

    Raises:
        HeaderError: The fields cannot be read.
    """
    try:
        fields = _decode_texts(envelope.ext_fields)
    except UNREADABLE:
        fields = decode_fields(envelope.ext_fields)
    return _credentials(claims_in(fields, envelope.version), body)


def _credentials(claims: Claims | None, body: bytes) -> Credentials:
    if claims is None:
        return _NONE
    key, signature, token, method, namespace, values = claims
    return Credentials(key, signature, token, method, namespace, values, body)
