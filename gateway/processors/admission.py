"""The one place where requests are let in or not, before anybody works on them.

A request is refused with NO_PERMISSION, as RocketMQ's brokers do, and the remark says
who may not do what. Which rule says so stands in the audit log alone.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from ropeway.acl.api import Credentials
from ropeway.gateway.node import names
from ropeway.gateway.processors.context import Refusal, request_name
from ropeway.gateway.processors.needs import PUB, topic_need
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.header import decode_fields
from ropeway.gateway.wire.request_credentials import claims_in
from ropeway.gateway.wire.unreadable import UNREADABLE

if TYPE_CHECKING:
    from ropeway.acl.api import Guard, Principal, Verdict
    from ropeway.gateway.node.clients import Member
    from ropeway.gateway.node.transactions.checks import Permitted
    from ropeway.gateway.processors.context import Context
    from ropeway.gateway.processors.needs import Needs
    from ropeway.gateway.wire.frame import Envelope
    from ropeway.gateway.wire.request_credentials import Claims

_NONE = Credentials()
_AT_ONCE = 64
"""Needs that are judged before others have a turn: a request may name thousands."""

_decode_texts = msgspec.json.Decoder(dict[str, str]).decode


async def admit(context: Context, guard: Guard, needs: Needs) -> None:
    """Let a request in, if whoever sent it may have it done, and read its fields.

    Raises:
        Refusal: It may not.
        HeaderError: The fields cannot be read.
    """
    peer, name = context.peer, request_name(context.code)
    context.rule_changes = context.node.reauthorization.changes
    if peer.identified:
        _know(context, peer.principal)
    else:
        verdict = await guard.identify(_said(context), peer.source, name)
        if not verdict.allowed:
            raise _refusal(verdict)
        _know(context, verdict.principal)
    needed = needs(context.read(), context)
    while True:
        part = tuple(islice(needed, _AT_ONCE))
        verdict = await guard.permit(context.principal, part, peer.source, name)
        if not verdict.allowed:
            raise _refusal(verdict)
        if len(part) < _AT_ONCE:
            return
        await context.slices().pause()
        if peer.closed:
            raise Refusal(ResponseCode.SYSTEM_ERROR, "the client has gone")


def _said(context: Context) -> Credentials:
    if context.envelope is None:
        return _credentials(context.claims, context.body)
    return credentials_of(context.envelope, context.body)


def _know(context: Context, principal: Principal | None) -> None:
    peer = context.peer
    if not peer.known:
        peer.become_known(principal)
    context.principal = principal
    share = peer.share
    if share is not None and principal is not None and not share.is_of(principal):
        raise Refusal(
            ResponseCode.SYSTEM_BUSY,
            f"{principal.name:.128} has as many connections as its quota allows; "
            "close one of them",
        )


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
        verdict = await guard.permit(
            producer.principal,
            (topic_need(topic, (PUB,)),),
            producer.link.source,
            request_name(RequestCode.CHECK_TRANSACTION_STATE),
        )
        return verdict.allowed

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
