"""JSON bodies that tell administrators of lite topics.

Members stand in the order in which a real broker writes them.

Source: the classes Get...InfoResponseBody in
org.apache.rocketmq.remoting.protocol.body, LiteLagInfo and ClientGroup, RocketMQ 5.5.0.
"""

from __future__ import annotations

import msgspec

from ropeway.gateway.wire.admin_bodies import (  # noqa: TC001 - read when bodies are decoded
    QueueProgress,
    TopicOffset,
)
from ropeway.gateway.wire.bodies import Body


class BrokerLiteInfo(Body, frozen=True, kw_only=True):
    """Counts of a broker's lite topics: GetBrokerLiteInfoResponseBody."""

    cq_table_size: int
    """Topics and lite topics."""
    current_lmq_num: int
    """Lite topics that have messages."""
    event_map_size: int
    """Clients that subscribe."""
    group_meta: dict[str, list[str]]
    """The groups of each parent."""
    lite_subscription_count: int
    """Lite topics that clients subscribe to, of each client."""
    max_lmq_num: int
    """How many lite topics there may be."""
    offset_table_size: int
    """Topics and lite topics that groups have offsets in, of each group."""
    order_info_count: int
    """Lite topics of groups that have been popped from lately."""
    store_type: str
    topic_meta: dict[str, int]
    """Minutes after which lite topics of each parent expire; -1 for never."""


class ParentTopicInfo(Body, frozen=True, kw_only=True):
    """A topic with lite topics: GetParentTopicInfoResponseBody."""

    groups: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Those that consume its lite topics; left out where there is none."""
    lite_topic_count: int
    lmq_num: int
    """Lite topics of all parents."""
    topic: str
    ttl: int
    """Minutes after which they expire; -1 for never."""


class ClientGroup(Body, frozen=True):
    """A client of a group."""

    client_id: str
    group: str


class LiteTopicInfo(Body, frozen=True, kw_only=True):
    """A lite topic: GetLiteTopicInfoResponseBody."""

    lite_topic: str
    parent_topic: str
    sharding_to_broker: bool
    """Whether this broker is the one that it is on."""
    subscriber: list[ClientGroup]
    topic_offset: TopicOffset


class LiteClientInfo(Body, frozen=True, kw_only=True):
    """What a client subscribes to: GetLiteClientInfoResponseBody."""

    client_id: str
    group: str
    last_access_time: int
    """When it was heard of, in milliseconds since 1970; -1 where it never was."""
    last_consume_time: int = 0
    """Not known; a real broker does not fill it in either."""
    lite_topic_count: int
    """-1 where the client is not known."""
    lite_topic_set: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Names of their queues, as many as were asked for."""
    parent_topic: str


class LiteLag(Body, frozen=True, kw_only=True):
    """How far behind a group is in a lite topic: LiteLagInfo."""

    earliest_unconsumed_timestamp: int
    """When the first message was stored that it has not done."""
    lag_count: int
    lite_topic: str


class LiteGroupInfo(Body, frozen=True, kw_only=True):
    """How far behind a group is: GetLiteGroupInfoResponseBody."""

    earliest_unconsumed_timestamp: int
    """Of all that it has not done; -1 for none."""
    group: str
    lag_count_top_k: list[LiteLag] | msgspec.UnsetType = msgspec.UNSET
    """Where it is behind by most messages, those in front."""
    lag_timestamp_top_k: list[LiteLag] | msgspec.UnsetType = msgspec.UNSET
    """Where it is behind for longest, those in front."""
    lite_topic: str | msgspec.UnsetType = msgspec.UNSET
    lite_topic_offset_wrapper: QueueProgress | msgspec.UnsetType = msgspec.UNSET
    parent_topic: str
    total_lag_count: int
    """-1 where the lite topic that was asked for has no messages."""
