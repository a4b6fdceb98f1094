"""Administering topics: making, changing, deleting, and looking at them.

Source: AdminBrokerProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node import attributes, message_types, names, placement
from ropeway.gateway.node.topic_changes import TopicError
from ropeway.gateway.processors import auto_create, lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import (
    CREATE,
    DELETE,
    GET,
    LIST,
    Needs,
    on_every_topic,
    on_topic,
    topic_needs,
)
from ropeway.gateway.processors.pass_on import lead_writes
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    AllTopicConfigReply,
    CreateTopic,
    CreateTopicList,
    DeleteTopic,
    GetAllTopicConfig,
    GetTopicConfig,
    GetTopicStats,
)
from ropeway.gateway.wire.commands.broker_admin import GetSystemTopicListFromBroker
from ropeway.routing.api import AT_SOURCE, PERM_WRITE, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ropeway.acl.api import Need
    from ropeway.storage.api import Partition

_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


@handles(CreateTopic, on_topic(CREATE))
async def create_topic(request: CreateTopic, context: Context) -> Answer:
    """Make a topic, or change one."""
    config = bodies.TopicConfig(
        topic_name=request.topic,
        read_queue_nums=request.read_queue_nums,
        write_queue_nums=request.write_queue_nums,
        perm=request.perm,
        order=request.order,
        topic_filter_type=request.topic_filter_type,
        topic_sys_flag=request.topic_sys_flag or 0,
        attributes=attributes.parse(request.attributes),
    )
    topic = _checked(config, context)
    if request.writes is not None:
        await lead_writes(request, context)
        return Answer()
    if not (request.all_brokers and context.node.drains.is_drained):
        # Those that are not drained are asked as well.
        await _put(
            topic,
            context,
            everywhere=bool(request.all_brokers) and request.begins is None,
            begins=_begins(request, topic),
        )
    return Answer()


def _begins(request: CreateTopic, topic: Topic) -> list[int]:
    """Where its queues are to begin, from queue 0 on; empty where that is not said."""
    if request.begins is None:
        return []
    words = request.begins.split(",")
    queues = max(topic.read_queue_nums, topic.write_queue_nums)
    if len(words) != queues or not all(
        one.isascii() and one.isdigit() for one in words
    ):
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"begins is {request.begins:.80}; allowed: {queues} offsets, joined by "
            "commas",
        )
    return [int(one[:20]) for one in words]


def _created_together(_: CreateTopicList, context: Context) -> Iterator[Need]:
    wanted = bodies.decode(bodies.TopicConfigList, context.body)
    for config in wanted.topic_config_list:
        yield from topic_needs(context.node, config.topic_name, (CREATE,))


@handles(CreateTopicList, Needs(_created_together))
async def create_topics(_: CreateTopicList, context: Context) -> Answer:
    """Make or change several topics; none, where one of them cannot be."""
    wanted = bodies.decode(bodies.TopicConfigList, context.body).topic_config_list
    for topic in [_checked(config, context) for config in wanted]:
        await _put(topic, context)
    return Answer()


def _checked(config: bodies.TopicConfig, context: Context) -> Topic:
    name = config.topic_name
    if complaint := names.topic_complaint(name) or _reserved(name, context):
        raise Refusal(ResponseCode.INVALID_PARAMETER, complaint)
    mixed = config.attributes.get(f"+{message_types.ATTRIBUTE}") == message_types.MIXED
    if mixed and not context.node.config.topics.mixed_message_type:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            "MIXED message type is not supported. Allowed: one type, or any with the "
            "setting topics.mixed_message_type",
        )
    filter_type = config.topic_filter_type
    if isinstance(filter_type, int):
        filter_type = str(bodies.named(filter_type, _FILTER_TYPES))
    if filter_type not in _FILTER_TYPES:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"topicFilterType is {filter_type!r:.80}; "
            f"allowed: {', '.join(_FILTER_TYPES)}",
        )
    return Topic(
        name=name,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        order=config.order,
        topic_filter_type=filter_type,
        topic_sys_flag=config.topic_sys_flag,
        attributes=_attributes(name, config.attributes, context),
    )


def _attributes(
    name: str, changes: Mapping[str, str], context: Context
) -> dict[str, str]:
    current = context.node.topics.get(name)
    elsewhere = context.node.routes.topics.get(name)
    if current is not None:
        altered = attributes.alter_topic(current.setup.attributes, changes)
    else:
        # New on this broker, though others may have it: what it is there stays.
        kept = elsewhere.attributes if elsewhere is not None else {}
        altered = {**kept, **attributes.alter_topic(None, changes)}
    return attributes.fit_for_compaction(
        altered,
        context.node.compaction.entry_format,
        created=current is None and elsewhere is None,
    )


async def _put(
    topic: Topic,
    context: Context,
    *,
    everywhere: bool = False,
    begins: Sequence[int] = (),
) -> None:
    queues = max(topic.read_queue_nums, topic.write_queue_nums)
    if complaint := placement.complaint(topic):
        raise TopicError(complaint)

    def wanted(old: Topic | None) -> Topic:
        is_mirror = bool(begins) or (old is not None and old.mirrored)
        mirrored = is_mirror and not topic.perm & PERM_WRITE
        writes = old.writes if old is not None and mirrored else AT_SOURCE
        return msgspec.structs.replace(
            topic,
            mirrored=mirrored,
            writes=writes,
            cut_offsets=old.cut_offsets if old is not None else [],
        )

    with auto_create.topic(context, topic.name, queues):
        await context.node.topics.change(
            topic.name, wanted, begins, everywhere=everywhere
        )


def _reserved(name: str, context: Context) -> str | None:
    config = context.node.config
    return names.reserved_complaint(name, config.cluster, config.broker)


@handles(DeleteTopic, on_topic(DELETE))
async def delete_topic(request: DeleteTopic, context: Context) -> Answer:
    """Delete a topic with its messages and every group's offsets in it."""
    name = request.topic
    if not name.strip():
        raise Refusal(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
    if complaint := _reserved(name, context):
        raise Refusal(ResponseCode.INVALID_PARAMETER, complaint)
    await context.node.topics.delete(name)
    return Answer()


@handles(GetTopicConfig, on_topic(GET))
def get_topic_config(request: GetTopicConfig, context: Context) -> Answer:
    """How one topic is set up."""
    topic = context.node.topics.get(request.topic)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"No topic in this broker. topic: {request.topic:.200}",
        )
    return Answer(body=bodies.encode(_config(topic.setup)))


@handles(GetAllTopicConfig, on_every_topic(GET, LIST))
def get_all_topic_config(request: GetAllTopicConfig, context: Context) -> Answer:
    """How all topics are set up, sorted by name; a part where one is asked for."""
    topics = {
        topic.name: topic.setup
        for topic in context.node.topics
        if context.shows(topic.name)
    }
    page = lookup.page_of(topics, request.topic_seq, request.max_topic_num)
    table = admin_bodies.TopicTable(
        topic_config_table={name: _config(topics[name]) for name in page}
    )
    return Answer(
        header=AllTopicConfigReply(total_topic_num=len(topics)),
        body=bodies.encode(table),
    )


def _config(topic: Topic) -> bodies.TopicConfig:
    return bodies.TopicConfig(
        attributes=topic.attributes,
        mirrored=topic.mirrored or msgspec.UNSET,
        writes=topic.writes if topic.mirrored else msgspec.UNSET,
        cut_offsets=topic.cut_offsets or msgspec.UNSET,
        order=topic.order,
        perm=topic.perm,
        read_queue_nums=topic.read_queue_nums,
        topic_filter_type=topic.topic_filter_type,
        topic_name=topic.name,
        topic_sys_flag=topic.topic_sys_flag,
        write_queue_nums=topic.write_queue_nums,
    )


@handles(GetTopicStats, on_topic(GET))
async def get_topic_stats(request: GetTopicStats, context: Context) -> Answer:
    """Where each queue of a topic begins and ends."""
    topic = lookup.find_topic(context.node, request.topic)
    broker = context.node.config.broker
    pairs = [
        (
            bodies.MessageQueue(broker, queue_id, topic.name),
            await _span(partition),
        )
        for queue_id, partition in enumerate(topic.partitions)
    ]
    stats = admin_bodies.TopicStats(admin_bodies.object_map(pairs))
    return Answer(body=bodies.encode(stats))


async def _span(partition: Partition) -> admin_bodies.TopicOffset:
    first, end = partition.first, partition.end
    newest_ms = await partition.store_time(end - 1) if end > first else None
    return admin_bodies.TopicOffset(
        last_update_timestamp=newest_ms or 0, max_offset=end, min_offset=first
    )


@handles(GetSystemTopicListFromBroker, on_every_topic(GET, LIST))
def get_system_topics(_: GetSystemTopicListFromBroker, context: Context) -> Answer:
    """The topics that are not users'."""
    config = context.node.config
    topics = {
        topic.name
        for topic in context.node.topics
        if names.reserved_complaint(topic.name, config.cluster, config.broker)
    }
    found = sorted(filter(context.shows, names.SYSTEM_TOPICS | topics))
    return Answer(body=bodies.encode(bodies.TopicList(topic_list=found)))
