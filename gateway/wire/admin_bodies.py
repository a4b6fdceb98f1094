"""JSON bodies that administrators' tools read: set-ups, progress, connections.

Members stand in the order in which a real broker writes them.

Source: the classes of the same names in org.apache.rocketmq.remoting.protocol.body,
.admin and .subscription, RocketMQ 5.3.4, and captures.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.wire.bodies import (
    Body,
    GroupConfig,
    MessageQueue,
    SubscriptionData,
    TopicConfig,
    decode,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


Nothing = dict[str, dict[str, str]]
"""A table that is always empty here: static topics, forbidden topics of groups."""


class DataVersion(Body, frozen=True):
    """Which state of a table this is; we keep no count, so it is always the same."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0


class TopicTable(Body, frozen=True, kw_only=True):
    """How topics are set up: TopicConfigAndMappingSerializeWrapper."""

    data_version: DataVersion = DataVersion()
    mapping_data_version: DataVersion = DataVersion()
    topic_config_table: dict[str, TopicConfig]
    topic_queue_mapping_detail_map: Nothing = msgspec.field(default_factory=dict)
    topic_queue_mapping_info_map: Nothing = msgspec.field(default_factory=dict)


class GroupTable(Body, frozen=True, kw_only=True):
    """How consumer groups are set up: SubscriptionGroupWrapper."""

    data_version: DataVersion = DataVersion()
    forbidden_table: Nothing = msgspec.field(default_factory=dict)
    subscription_group_table: dict[str, GroupConfig]


class GroupList(Body, frozen=True):
    """Names of consumer groups."""

    group_list: list[str]


class KvTable(Body, frozen=True):
    """Names and values."""

    table: dict[str, str]


class TopicOffset(Body, frozen=True, kw_only=True):
    """What a queue holds."""

    last_update_timestamp: int
    """When its newest message was stored; 0 where there is none."""
    max_offset: int
    min_offset: int


class TopicStats(Body, frozen=True):
    """What a topic's queues hold: TopicStatsTable."""

    offset_table: msgspec.Raw
    """`object_map` of `bodies.MessageQueue` to `TopicOffset`."""
    topic_put_tps: float = 0.0


class QueueProgress(Body, frozen=True, kw_only=True):
    """How far a group is in a queue: OffsetWrapper."""

    broker_offset: int
    consumer_offset: int
    last_timestamp: int
    """When the last message that the group has done was stored; 0 for none."""
    pull_offset: int


class ConsumeStats(Body, frozen=True, kw_only=True):
    """How far a group is in its topics."""

    consume_tps: float = 0.0
    offset_table: msgspec.Raw
    """`object_map` of `bodies.MessageQueue` to `QueueProgress`."""


class ConnectionInfo(Body, frozen=True, kw_only=True):
    """A connected client."""

    client_addr: str
    client_id: str
    language: str
    version: int


class ConsumerConnection(Body, frozen=True, kw_only=True):
    """Who consumes in a group, and what."""

    connection_set: list[ConnectionInfo]
    consume_from_where: str | None
    consume_type: str | None
    message_model: str | None
    subscription_table: dict[str, SubscriptionData]


class ProducerConnection(Body, frozen=True):
    """Who produces in a group."""

    connection_set: list[ConnectionInfo]


class ProducerInfo(Body, frozen=True, kw_only=True):
    """A connected producer."""

    client_id: str
    language: str
    last_update_timestamp: int
    remote_ip: str = msgspec.field(name="remoteIP")
    version: int


class ProducerTable(Body, frozen=True):
    """Every producer by its group: ProducerTableInfo."""

    data: dict[str, list[ProducerInfo]]


class QueueTimeSpan(Body, frozen=True, kw_only=True):
    """How old what a group has and has not done of a queue is."""

    consume_time_stamp: int
    delay_time: int
    max_time_stamp: int
    message_queue: MessageQueue
    min_time_stamp: int


class QueueTimeSpans(Body, frozen=True):
    """The same of all queues of a topic: QueryConsumeTimeSpanBody."""

    consume_time_span_set: list[QueueTimeSpan]


class SubscriptionAnswer(Body, frozen=True):
    """What a group wants of a topic: QuerySubscriptionResponseBody."""

    group: str
    subscription_data: SubscriptionData | msgspec.UnsetType
    topic: str | msgspec.UnsetType


class ResetOffsets(Body, frozen=True):
    """Where a group goes on in each queue: ResetOffsetBody."""

    offset_table: msgspec.Raw
    """`object_map` of `bodies.MessageQueue` to an offset."""


class ResetQueue(Body, frozen=True):
    """The same of one queue, for C++: MessageQueueForC."""

    broker_name: str
    offset: int
    queue_id: int
    topic: str


class ResetQueues(Body, frozen=True):
    """The same of every queue, for C++: ResetOffsetBodyForC."""

    offset_table: list[ResetQueue]


class ConsumerStatuses(Body, frozen=True):
    """Where each client of a group is: GetConsumerStatusBody."""

    consumer_table: dict[str, msgspec.Raw]
    """`object_map` of `bodies.MessageQueue` to an offset, by client id."""
    message_queue_table: Nothing = msgspec.field(default_factory=dict)


class CorrectedOffsets(Body, frozen=True):
    """The lowest offset by queue id: QueryCorrectionOffsetBody."""

    correction_offsets: dict[int, int]


class ConsumeStatsList(Body, frozen=True, kw_only=True):
    """How far every group is in each of its topics."""

    broker_addr: str
    consume_stats_list: list[dict[str, list[ConsumeStats]]]
    total_diff: int
    total_inflight_diff: int


class StatsItem(Body, frozen=True, kw_only=True):
    """One count over a period: BrokerStatsItem."""

    sum: int
    tps: float
    avgpt: float = 0.0
    """By request; these are not counted."""


class BrokerStats(Body, frozen=True):
    """One count over three periods: BrokerStatsData."""

    stats_minute: StatsItem
    stats_hour: StatsItem
    stats_day: StatsItem


class QueueEntry(Body, frozen=True, kw_only=True):
    """A message as its queue's index has it: ConsumeQueueData."""

    physic_offset: int
    physic_size: int
    tags_code: int
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class QueueEntries(Body, frozen=True, kw_only=True):
    """A part of a queue's index: QueryConsumeQueueResponseBody."""

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: list[QueueEntry]
    max_queue_index: int
    min_queue_index: int


def object_map(pairs: Iterable[tuple[Body, Body | int]]) -> msgspec.Raw:
    """A map with objects as keys, which is no JSON but what Java's brokers write."""
    return msgspec.Raw(
        b"{%b}"
        % b",".join(b"%b:%b" % (encode(key), encode(value)) for key, value in pairs)
    )


_PAIR = re.compile(rb"(\{[^{}]*\})\s*:\s*(-?\d+)")


def read_object_map(data: bytes) -> list[tuple[MessageQueue, int]]:
    """The queues and numbers of the one such map in a body that a client sent.

    Raises:
        HeaderError: A key is no queue.
    """
    return [
        (decode(MessageQueue, key), int(value)) for key, value in _PAIR.findall(data)
    ]
