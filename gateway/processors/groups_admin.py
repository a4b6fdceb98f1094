"""Administering consumer groups: making, changing, deleting and listing them.

Source: AdminBrokerProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import attributes, names
from ropeway.gateway.processors import auto_create, lookup, retry_policies
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    CREATE,
    DELETE,
    GET,
    LIST,
    Needs,
    group_need,
    on_every_group,
    on_group,
    on_topic,
)
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    AllGroupConfigReply,
    CreateGroup,
    DeleteGroup,
    GetAllGroupConfig,
    QueryTopicConsumeByWho,
)
from ropeway.gateway.wire.commands.group_admin import (
    CreateGroupList,
    GetGroupConfig,
    QueryTopicsByConsumer,
)
from ropeway.routing.api import Group
from ropeway.storage.api import MAX_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Need


def _created(_: CreateGroup, context: Context) -> Iterator[Need]:
    config = bodies.decode(bodies.GroupConfig, context.body)
    yield group_need(config.group_name, (CREATE,))


def _created_together(_: CreateGroupList, context: Context) -> Iterator[Need]:
    wanted = bodies.decode(bodies.GroupConfigList, context.body)
    for config in wanted.group_config_list:
        yield group_need(config.group_name, (CREATE,))


@handles(CreateGroup, Needs(_created))
async def create_group(_: CreateGroup, context: Context) -> Answer:
    """Make a group, or change one."""
    config = bodies.decode(bodies.GroupConfig, context.body)
    await _put(_checked(config, context), context)
    return Answer()


@handles(CreateGroupList, Needs(_created_together))
async def create_groups(_: CreateGroupList, context: Context) -> Answer:
    """Make or change several groups; none, where one of them cannot be."""
    wanted = bodies.decode(bodies.GroupConfigList, context.body).group_config_list
    for group in [_checked(config, context) for config in wanted]:
        await _put(group, context)
    return Answer()


def _checked(config: bodies.GroupConfig, context: Context) -> Group:
    name = config.group_name
    if complaint := names.group_complaint(name):
        raise Refusal(ResponseCode.INVALID_PARAMETER, complaint)
    if config.retry_queue_nums > MAX_PARTITIONS:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"retryQueueNums is {config.retry_queue_nums}; "
            f"allowed: up to {MAX_PARTITIONS}",
        )
    current = context.node.groups.get(name)
    return Group(
        name=name,
        consume_enable=config.consume_enable,
        consume_from_min_enable=config.consume_from_min_enable,
        consume_broadcast_enable=config.consume_broadcast_enable,
        consume_message_orderly=config.consume_message_orderly,
        retry_queue_nums=config.retry_queue_nums,
        retry_max_times=config.retry_max_times,
        retry_policy=retry_policies.read(config.group_retry_policy),
        broker_id=config.broker_id,
        which_broker_when_consume_slowly=config.which_broker_when_consume_slowly,
        notify_consumer_ids_changed_enable=config.notify_consumer_ids_changed_enable,
        group_sys_flag=config.group_sys_flag,
        consume_timeout_minute=config.consume_timeout_minute,
        attributes=attributes.alter_group(
            current.attributes if current else None, config.attributes
        ),
    )


async def _put(group: Group, context: Context) -> None:
    with auto_create.group(context, group.name, group.retry_queue_nums):
        await context.node.groups.put(group)


@handles(DeleteGroup, on_group(DELETE, field="group_name"))
async def delete_group(request: DeleteGroup, context: Context) -> Answer:
    """Delete a group, and its offsets where that is asked for."""
    node = context.node
    await node.groups.delete(request.group_name)
    if request.clean_offset:
        node.offsets.forget(group=request.group_name)
        node.pop.forget(group=request.group_name)
        node.lite.forget_group(request.group_name)
        node.resets.forget(group=request.group_name)
        node.pulled.forget(group=request.group_name)
    return Answer()


@handles(GetGroupConfig, on_group(GET, field="group"))
async def get_group_config(request: GetGroupConfig, context: Context) -> Answer:
    """How one group is set up."""
    group = await context.node.groups.find(request.group)
    if group is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"No group in this broker. group: {request.group:.200}",
        )
    return Answer(body=bodies.encode(_config(group)))


@handles(GetAllGroupConfig, on_every_group(GET, LIST))
async def get_all_group_config(request: GetAllGroupConfig, context: Context) -> Answer:
    """How all groups are set up, sorted by name; a part where one is asked for."""
    await context.node.routes.catch_up()
    groups = context.node.routes.groups
    page = lookup.page_of(groups, request.group_seq, request.max_group_num)
    table = admin_bodies.GroupTable(
        subscription_group_table={name: _config(groups[name]) for name in page}
    )
    return Answer(
        header=AllGroupConfigReply(total_group_num=len(groups)),
        body=bodies.encode(table),
    )


def _config(group: Group) -> bodies.GroupConfig:
    return bodies.GroupConfig(
        attributes=group.attributes,
        broker_id=group.broker_id,
        consume_broadcast_enable=group.consume_broadcast_enable,
        consume_enable=group.consume_enable,
        consume_from_min_enable=group.consume_from_min_enable,
        consume_message_orderly=group.consume_message_orderly,
        consume_timeout_minute=group.consume_timeout_minute,
        group_name=group.name,
        group_retry_policy=retry_policies.show(group.retry_policy),
        group_sys_flag=group.group_sys_flag,
        notify_consumer_ids_changed_enable=group.notify_consumer_ids_changed_enable,
        retry_max_times=group.retry_max_times,
        retry_queue_nums=group.retry_queue_nums,
        which_broker_when_consume_slowly=group.which_broker_when_consume_slowly,
    )


@handles(QueryTopicConsumeByWho, on_topic(GET))
def query_topic_consume_by_who(
    request: QueryTopicConsumeByWho, context: Context
) -> Answer:
    """The groups that consume a topic now, or have offsets in it."""
    node = context.node
    found = {
        group.name
        for group in node.clients.consumer_groups()
        if request.topic in group.subscriptions
    }
    found |= {
        group
        for group in node.offsets.groups()
        if node.offsets.queues(group, request.topic) and not names.is_inner(group)
    }
    return Answer(body=bodies.encode(admin_bodies.GroupList(sorted(found))))


@handles(QueryTopicsByConsumer, on_group(GET, field="group"))
def query_topics_by_consumer(
    request: QueryTopicsByConsumer, context: Context
) -> Answer:
    """The topics that a group has offsets in."""
    topics = bodies.TopicList(
        broker_addr=context.peer.advertised,
        topic_list=[
            topic
            for topic in context.node.offsets.topics(request.group)
            if context.shows(topic)
        ],
    )
    return Answer(body=bodies.encode(topics))
