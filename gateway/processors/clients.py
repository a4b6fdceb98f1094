"""Clients' coming and going, and their sharing of queues.

Source: ClientManageProcessor.java, ConsumerManageProcessor.java and
AdminBrokerProcessor.lockBatchMQ, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.common.eager import eager, own_task
from ropeway.gateway.node import names, subscriptions
from ropeway.gateway.node.creations import TooManyError, check_name
from ropeway.gateway.node.placement import is_drained
from ropeway.gateway.processors import auto_create
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    GET,
    KNOWN,
    SUB,
    Needs,
    group_need,
    on_group,
    on_group_if_given,
    topic_needs,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.clients import (
    CheckClientConfig,
    GetConsumerListByGroup,
    HeartBeat,
    LockBatchMq,
    UnlockBatchMq,
    UnregisterClient,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Need
    from ropeway.gateway.node.fair_queueing import Slices

_WHOLE_NEXT_TIME = Answer(
    fields={"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
)
"""We keep no fingerprints of heartbeats, so none can be short."""
_LARGE_BYTES = 64 * 1024
"""Of more JSON than that, one heartbeat of a flow is decoded at a time."""


def _said(context: Context) -> bodies.HeartbeatData:
    """What a heartbeat says, which is read once, unless it is large.

    Many large ones that wait for their turn would keep three times their bodies.

    Raises:
        HeaderError: It is none.
        Refusal: It says too much.
    """
    said: bodies.HeartbeatData | None = context.said
    if said is None:
        said = _read(context)
        if len(context.body) <= _LARGE_BYTES:
            context.said = said
    return said


def _read(context: Context) -> bodies.HeartbeatData:
    data = bodies.decode(bodies.HeartbeatData, context.body)
    consumers = data.consumer_data_set or ()
    limits = context.node.config.requests
    _check_count(
        "producers and consumers in a heartbeat",
        len(data.producer_data_set or ()) + len(consumers),
        limits.heartbeat_groups,
    )
    _check_count(
        "subscriptions in a heartbeat",
        sum(len(one.subscription_data_set or ()) for one in consumers),
        limits.heartbeat_subscriptions,
    )
    return data


def _consumed(_: HeartBeat, context: Context) -> Iterator[Need]:
    consumers = _said(context).consumer_data_set or ()
    for consumer in consumers:
        yield group_need(consumer.group_name, (SUB,))
    # A client's groups mostly want the same topics.
    topics = dict.fromkeys(
        wanted.topic for one in consumers for wanted in one.subscription_data_set or ()
    )
    for topic in topics:
        yield from topic_needs(context.node, topic, (SUB,))


@handles(HeartBeat, Needs(_consumed), anywhere=True)
async def heart_beat(_: HeartBeat, context: Context) -> Answer:
    """A client lives, and has these producers and consumers."""
    slices = context.slices()
    if len(context.body) <= _LARGE_BYTES:
        return await _beat(context, slices)
    # Many that had each begun would keep all that they say, three times their bodies.
    await slices.begin_large()
    try:
        if context.peer.closed:
            return _WHOLE_NEXT_TIME
        return await _beat(context, slices)
    finally:
        slices.end_large()


async def _beat(context: Context, slices: Slices) -> Answer:
    node = context.node
    data = _said(context)
    if data.without_sub:
        # Short, as to a broker that keeps fingerprints; what the client wants of which
        # topics is not in it.
        node.clients.touch(context.peer)
        return _WHOLE_NEXT_TIME
    refused: Refusal | TooManyError | None = None
    for consumer in data.consumer_data_set or ():
        await slices.pause()
        if context.peer.closed:
            break
        try:
            await _register(consumer, data.client_id, context)
        except (Refusal, TooManyError) as error:
            # The client's other consumers and producers go on.
            refused = error
    if not context.peer.closed:
        for producer in data.producer_data_set or ():
            node.clients.register_producer(
                context.peer, data.client_id, producer.group_name, context.principal
            )
    if refused is not None:
        try:
            raise refused
        finally:
            # It has this frame, which would have it, and all that came: a cycle.
            del refused
    return _WHOLE_NEXT_TIME


async def _register(
    consumer: bodies.ConsumerData, client_id: str, context: Context
) -> None:
    node = context.node
    group = await auto_create.ensure_group(
        context,
        consumer.group_name,
        names.group_complaint(consumer.group_name)
        or f"subscription group not exist, {consumer.group_name:.200}",
    )
    # Slaves know of clients too, so that they need not come again after a take-over;
    # what is made for them, the master makes.
    if (
        group.retry_queue_nums > 0
        and not consumer.is_broadcasting
        and node.leadership.leads
        and not is_drained(node.routes, node.config.broker)
    ):
        retry_topic = names.retry_topic(consumer.group_name)
        await node.topics.ensure_derived(retry_topic, group.retry_queue_nums)
    if not context.peer.closed:
        node.clients.register_consumer(
            context.peer,
            client_id,
            consumer,
            context.principal,
            notify=group.notify_consumer_ids_changed_enable,
        )


@handles(UnregisterClient, on_group_if_given(SUB), anywhere=True)
def unregister_client(request: UnregisterClient, context: Context) -> Answer:
    """A producer or a consumer stops."""
    if request.producer_group:
        context.node.clients.unregister_producer(context.peer, request.producer_group)
    if request.consumer_group:
        context.node.clients.unregister_consumer(context.peer, request.consumer_group)
    return Answer(fields={})


@handles(CheckClientConfig, KNOWN, anywhere=True)
def check_client_config(_: CheckClientConfig, context: Context) -> Answer:
    """Whether a subscription's expression can be used here."""
    asked = bodies.decode(bodies.CheckClientBody, context.body).subscription_data
    subscriptions.build(
        asked.sub_string,
        asked.expression_type,
        asked.sub_version,
        context.node.config.requests,
    )
    return Answer()


@handles(GetConsumerListByGroup, on_group(SUB, GET))
def get_consumer_list(request: GetConsumerListByGroup, context: Context) -> Answer:
    """The ids of the clients that consume in a group."""
    group = context.node.clients.consumer_group(request.consumer_group)
    if group is None:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"no consumer for this group, {request.consumer_group:.200}",
        )
    ids = sorted({member.client_id for member in group.members.values()})
    return Answer(
        fields={}, body=bodies.encode(bodies.ConsumerIdList(consumer_id_list=ids))
    )


def _queues(context: Context) -> bodies.LockBatchBody:
    """What queues a client names.

    Raises:
        HeaderError: It names none.
        Refusal: It names too many.
        TooLongError: Its client id is too long.
    """
    asked = bodies.decode(bodies.LockBatchBody, context.body)
    limit = context.node.config.requests.queues
    _check_count("queues to lock or unlock", len(asked.mq_set), limit)
    characters = context.node.config.creations.client_id_characters
    check_name("client id", asked.client_id, characters)
    return asked


def _locked(_: object, context: Context) -> Iterator[Need]:
    asked = _queues(context)
    yield group_need(asked.consumer_group, (SUB,))
    for name in {queue.topic for queue in asked.mq_set}:
        yield from topic_needs(context.node, name, (SUB,))


def _holder(asked: bodies.LockBatchBody, context: Context) -> str:
    """Who holds a lock: nobody does by another principal's client id."""
    if context.principal is None:
        return asked.client_id
    return f"{asked.client_id} of {context.principal}"


@handles(LockBatchMq, Needs(_locked))
@eager
async def lock_queues(_: LockBatchMq, context: Context) -> Answer:
    """Take queues for one client of a group."""
    asked, node = _queues(context), context.node
    group = asked.consumer_group
    if node.groups.get(group) is None:
        remark = f"subscription group not exist, {group:.200}"
        await own_task(auto_create.ensure_group(context, group, remark))
    # A lock is kept for a minute: only of what there is, or any number could be.
    queues = {
        (queue.topic, queue.queue_id): queue
        for queue in asked.mq_set
        if _is_there(context, queue)
    }
    held = node.locks.lock(group, _holder(asked, context), queues)
    locked = bodies.LockedQueues(lock_ok_mq_set=[queues[queue] for queue in held])
    answer = Answer(body=bodies.encode(locked))
    if node.locks.shared:
        await own_task(node.locks.kept())
    return answer


def _is_there(context: Context, queue: bodies.MessageQueue) -> bool:
    topic = context.node.topics.get(queue.topic)
    return topic is not None and 0 <= queue.queue_id < len(topic.partitions)


@handles(UnlockBatchMq, Needs(_locked))
def unlock_queues(_: UnlockBatchMq, context: Context) -> Answer:
    """Give queues of one client of a group free."""
    asked = _queues(context)
    queues = [(queue.topic, queue.queue_id) for queue in asked.mq_set]
    context.node.locks.unlock(asked.consumer_group, _holder(asked, context), queues)
    return Answer()


def _check_count(what: str, count: int, allowed: int) -> None:
    """Refuse a request that lists more than it may.

    Raises:
        Refusal: It does.
    """
    if count > allowed:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER, f"{count} {what}; allowed: {allowed}"
        )
