"""Lite topics: subscribing to them, and popping what comes there.

Source: LiteSubscriptionCtlProcessor.java and PopLiteMessageProcessor.java, 5.5.0.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.lite import lite_attributes, names
from ropeway.gateway.lite.offset_reset import Begin
from ropeway.gateway.node import attributes
from ropeway.gateway.pop.pop_receive import MAX_BYTES
from ropeway.gateway.processors import pop
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import SUB, Needs, on_popped, popped_needs
from ropeway.gateway.processors.reauthorize import Interruptible
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.throttling import LimitedRead
from ropeway.gateway.wire import bodies, receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.lite import (
    COMPLETE_ADD,
    COMPLETE_REMOVE,
    PARTIAL_ADD,
    PARTIAL_REMOVE,
    LiteSubscription,
    LiteSubscriptionCtl,
    LiteSubscriptions,
    OffsetOption,
    PopLiteMessage,
    PopLiteReply,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ropeway.acl.api import Need
    from ropeway.gateway.lite.lite_attributes import LiteGroup
    from ropeway.gateway.lite.offset_reset import Kind
    from ropeway.gateway.lite.service import Lite
    from ropeway.gateway.lite.subscribers import Subscriber
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.routing.api import Group

_ANY_QUEUE = -1
_POLICIES = {1: Begin("first"), 2: Begin("end")}
_KINDS: dict[str, Kind] = {"OFFSET": "offset", "TAIL_N": "back", "TIMESTAMP": "time"}


@handles(PopLiteMessage, on_popped(SUB))
async def pop_lite_message(request: PopLiteMessage, context: Context) -> Answer:
    """Hand messages of lite topics out, or wait for some."""
    group, topic, _ = _places(request.consumer_group, request.topic, context)
    if not 0 < request.max_msg_num <= pop.MAX_COUNT:
        raise pop.wrong_count(request.max_msg_num)
    longest_ms = context.node.pop.ledger.longest_ms
    if not 0 < request.invisible_time <= longest_ms:
        raise pop.wrong_invisible(request.invisible_time, 1, longest_ms)
    lite, peer = context.node.lite, context.peer
    one = _subscriber(context, group.name, request.client_id, topic)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + min(request.poll_time, pop.MAX_POLL_MS) / 1000
    limited = LimitedRead(
        context,
        group.name,
        topic.name,
        MAX_BYTES,
        request.poll_time,
        lambda: not _is_outdated(one, group, topic, context),
    )
    while True:
        # Whether it is in memory is known only when it was read.
        permit = await limited.acquire(cold=True)
        if permit is None:
            reply = PopLiteReply(0, request.invisible_time, receipt.IN_ORDER, "")
            code = ResponseCode.POLLING_TIMEOUT
            return Answer(code, "NO_MESSAGE_IN_QUEUE", reply)
        with permit:
            async with context.node.disk_reads:
                given = await lite.pop(
                    one, request.max_msg_num, request.invisible_time, request.attempt_id
                )
            permit.size_bytes = sum(map(len, given.data))
        reply = PopLiteReply(
            pop_time=given.pop_ms,
            invisible_time=request.invisible_time,
            revive_qid=receipt.IN_ORDER,
            order_count_info=";".join(map(str, given.counts)),
        )
        if given.data:
            count = len(given.counts)
            context.node.traffic.pulled[topic.name][group.name] += count
            return Answer(ResponseCode.SUCCESS, "FOUND", reply, records=given.data)
        peer.hold()
        try:
            with Interruptible(context):
                came = await lite.wait(one, ends_at - loop.time())
        finally:
            peer.unhold()
        if not came or peer.closed or _is_outdated(one, group, topic, context):
            code = ResponseCode.POLLING_TIMEOUT
            return Answer(code, "NO_MESSAGE_IN_QUEUE", reply)


def _is_outdated(
    one: Subscriber, group: Group, topic: ServedTopic, context: Context
) -> bool:
    """Whether something was changed since a pop came: its client asks again."""
    node = context.node
    return (
        not node.leadership.is_certain()
        or node.lite.subscribers.find(one.group, one.client_id) is not one
        or node.groups.get(group.name) is not group
        or node.topics.get(topic.name) is not topic
    )


def _places(
    group_name: str, topic_name: str, context: Context
) -> tuple[Group, ServedTopic, LiteGroup]:
    """A group and the topic whose lite topics it consumes.

    Raises:
        Refusal: They are not such, or do not belong together.
    """
    group = context.node.groups.get(group_name)
    if group is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{group_name:.200}] does not exist",
        )
    topic = pop.check(context, topic_name, _ANY_QUEUE, group)
    if not topic.of_lites:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"the topic [{topic.name}] message type not match; allowed: topics with "
            "message.type=LITE",
        )
    bound = lite_attributes.of_group(group.attributes)
    if bound.parent != topic.name:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"subscription bind topic not match, {group.name}: lite.bind.topic is "
            f"{bound.parent or 'not set'}; asked for: {topic.name}",
        )
    return group, topic, bound


def _subscriptions(context: Context) -> list[LiteSubscription]:
    found = bodies.decode(LiteSubscriptions, context.body).subscription_set
    if not found:
        raise Refusal(
            ResponseCode.ILLEGAL_OPERATION, "LiteSubscriptionCtlRequestBody is empty."
        )
    return found


def _subscribed(_: LiteSubscriptionCtl, context: Context) -> Iterator[Need]:
    for group, topic in {(one.group, one.topic) for one in _subscriptions(context)}:
        yield from popped_needs(context.node, group, topic, (SUB,))


@handles(LiteSubscriptionCtl, Needs(_subscribed))
async def lite_subscription_ctl(_: LiteSubscriptionCtl, context: Context) -> Answer:
    """Change what clients subscribe to."""
    for wanted in _subscriptions(context):
        change = _ACTIONS.get(wanted.action)
        if change is None:
            raise Refusal(
                ResponseCode.INVALID_PARAMETER,
                f"action is {wanted.action:.50}; allowed: {', '.join(_ACTIONS)}",
            )
        if not wanted.client_id.strip():
            raise Refusal(ResponseCode.INVALID_PARAMETER, "clientId is blank")
        _check_names(wanted)
        places = _places(wanted.group, wanted.topic, context)
        topic, bound = places[1:]
        one = _subscriber(context, wanted.group, wanted.client_id, topic)
        await change(context.node.lite, one, bound, wanted)
    return Answer()


def _subscriber(
    context: Context, group: str, client_id: str, topic: ServedTopic
) -> Subscriber:
    """A client's subscription, which is its principal's alone.

    Raises:
        TakenError: Another principal's client has the id.
    """
    lite, principal = context.node.lite, context.principal
    owners = context.node.clients.owners
    found = lite.subscribers.find(group, client_id)
    owner = found.owner if found is not None else None
    owner = owner or owners.of(client_id)
    if owner is not None:
        owners.check(client_id, owner, principal)
    one = lite.subscriber(group, client_id, topic)
    one.owner = principal
    return one


def _check_names(wanted: LiteSubscription) -> None:
    for name in wanted.lite_topic_set or ():
        if complaint := names.complaint(name):
            raise Refusal(ResponseCode.INVALID_PARAMETER, complaint)


async def _add(
    lite: Lite, one: Subscriber, bound: LiteGroup, wanted: LiteSubscription
) -> None:
    if bound.wants_all:
        raise Refusal(
            ResponseCode.ILLEGAL_OPERATION,
            "subscribe lite operation is not supported for this group: with "
            f"{attributes.LITE_WILDCARD} its clients have all lite topics; allowed: "
            f"{COMPLETE_ADD}",
        )
    begin = _begin(wanted.offset_option)
    await lite.subscribe(one, bound, wanted.lite_topic_set or (), begin)


async def _remove(
    lite: Lite, one: Subscriber, bound: LiteGroup, wanted: LiteSubscription
) -> None:
    await lite.unsubscribe(one, bound, wanted.lite_topic_set or ())


async def _replace(
    lite: Lite, one: Subscriber, bound: LiteGroup, wanted: LiteSubscription
) -> None:
    lite.replace(one, bound, wanted.lite_topic_set or ())


async def _leave(
    lite: Lite, one: Subscriber, _: LiteGroup, __: LiteSubscription
) -> None:
    lite.gone(one.client_id, one.group, one.owner)


_ACTIONS: dict[
    str,
    Callable[[Lite, Subscriber, LiteGroup, LiteSubscription], Awaitable[None]],
] = {
    PARTIAL_ADD: _add,
    PARTIAL_REMOVE: _remove,
    COMPLETE_ADD: _replace,
    COMPLETE_REMOVE: _leave,
}


def _begin(option: OffsetOption | None) -> Begin | None:
    """Where a subscription begins; None: where the group is."""
    if option is None:
        return None
    if option.type == "POLICY" and 0 <= option.value <= max(_POLICIES):
        return _POLICIES.get(option.value)
    kind = _KINDS.get(option.type)
    if kind is None or not 0 <= option.value < 1 << 63:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"offset option {option.type:.20} {option.value}; allowed: POLICY 0 to 2, "
            f"and 0 and more of {', '.join(_KINDS)}",
        )
    return Begin(kind, option.value)
