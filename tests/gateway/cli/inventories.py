"""Inventories of clusters that do not run, for what no cheap one would hold."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ropeway.client.admin_broker_facts import BrokerFacts
from ropeway.client.admin_groups import Member, Membership
from ropeway.client.admin_inventory import (
    GroupFacts,
    Inventory,
    TopicFacts,
)
from ropeway.client.lags import QueueLag, QueueSpan
from ropeway.client.message import MessageQueue
from ropeway.gateway.wire import bodies

NOBODY = Membership(members=[], subscriptions={})
MEMBER = Member("10.0.0.7@1", "10.0.0.7:4711", "JAVA", 453)


def broker(name: str = "broker-a", **more: Any) -> BrokerFacts:
    made = BrokerFacts(
        broker=name,
        cluster="DefaultCluster",
        address=f"{name}:10911",
        version="V5_5_0",
        clock_ms=0,
        clock_within_ms=500,
        stored_bytes=1,
        is_ropeway=False,
    )
    return structs.replace(made, **more)


def topic(name: str, *brokers: str, messages: int = 0, **config: Any) -> TopicFacts:
    """A topic of one queue on each broker; all messages are in its first."""
    names = brokers or ("broker-a",)
    read = config.pop("read", 1)
    setup = {"read_queue_nums": read, "write_queue_nums": config.pop("write", read)}
    return TopicFacts(
        topic=name,
        configs={
            one: bodies.TopicConfig(topic_name=name, **{**setup, **config})
            for one in names
        },
        spans=[QueueSpan(MessageQueue(name, names[0], 0), 0, messages)],
        is_static=False,
    )


def group(
    name: str, lags: dict[str, int], joined: Membership = NOBODY, **config: Any
) -> GroupFacts:
    """A group with so many messages to read of each topic."""
    return GroupFacts(
        group=name,
        configs={"broker-a": bodies.GroupConfig(group_name=name, **config)},
        lags=[
            QueueLag(MessageQueue(one, "broker-a", 0), 1, 1 + lag)
            for one, lag in lags.items()
        ],
        membership=joined,
    )


def cluster(**more: Any) -> Inventory:
    made = Inventory(
        clusters=["DefaultCluster"],
        brokers=[broker()],
        silent=[],
        topics=[],
        groups=[],
        clients=[],
        users=[],
        policies=[],
        under_way=[],
        untold=[],
    )
    return structs.replace(made, **more)


HERE = cluster(brokers=[broker("broker-0", is_ropeway=True)], clusters=["Ropeway"])
"""An empty target."""
