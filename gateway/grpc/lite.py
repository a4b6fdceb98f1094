"""SyncLiteSubscription: which lite topics a client wants, said to each broker.

A client says it to one node. Each broker of the parent topic has lite topics of its
own, and hears of it.

Source: ClientActivity.java and LiteSubscriptionService.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.message_decoder import lite_topic
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import (
    LiteSubscriptionAction,
    SyncLiteSubscriptionResponse,
)
from ropeway.gateway.grpc.statuses import OK
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands import lite
from ropeway.gateway.wire.commands.lite import LiteSubscriptionCtl

if TYPE_CHECKING:
    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import OffsetOption, SyncLiteSubscriptionRequest

_ACTIONS = {
    LiteSubscriptionAction.PARTIAL_ADD: lite.PARTIAL_ADD,
    LiteSubscriptionAction.PARTIAL_REMOVE: lite.PARTIAL_REMOVE,
    LiteSubscriptionAction.COMPLETE_ADD: lite.COMPLETE_ADD,
    LiteSubscriptionAction.COMPLETE_REMOVE: lite.COMPLETE_REMOVE,
}


@rpc("SyncLiteSubscription")
async def sync_lite_subscription(
    request: SyncLiteSubscriptionRequest, call: Call
) -> SyncLiteSubscriptionResponse:
    """Subscribe to lite topics, or end that."""
    topic, group = validation.topic(request.topic), validation.group(request.group)
    names = [lite_topic(name) for name in request.lite_topic_set]
    wanted = lite.LiteSubscription(
        action=_ACTIONS.get(request.action, str(request.action)),
        client_id=call.client_id,
        group=group,
        topic=topic,
        lite_topic_set=names,
        offset_option=_option(request.offset_option)
        if request.HasField("offset_option")
        else None,
        version=request.version,
    )
    body = bodies.encode(lite.LiteSubscriptions([wanted]))
    known = call.node.routes.topics.get(topic)
    brokers = list(known.route) if known is not None else []
    await asyncio.gather(
        *(
            call.do(LiteSubscriptionCtl(bname=broker), body)
            for broker in brokers or [call.node.config.broker]
        )
    )
    return SyncLiteSubscriptionResponse(status=OK)


def _option(given: OffsetOption) -> lite.OffsetOption | None:
    kind = given.WhichOneof("offset_type")
    if kind is None:
        return None
    return lite.OffsetOption(kind.upper(), getattr(given, kind))
