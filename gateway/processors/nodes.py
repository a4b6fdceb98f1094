"""What `ropeway` asks nodes: how they stand, where queues are, to let another lead."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING

import structlog

from ropeway.common.clock import now_ms
from ropeway.gateway import __version__
from ropeway.gateway.node import namespaces
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, UPDATE, on_cluster, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.nodes import (
    GetNodeStatus,
    GetTopicPlaces,
    NodeStatus,
    StepBack,
    TopicPlaces,
)

if TYPE_CHECKING:
    from ropeway.gateway.config import Config
    from ropeway.routing.api import RouteStore

log = structlog.get_logger(__name__)

_ZOOKEEPER = "zookeeper://"


@handles(GetNodeStatus, on_cluster(GET), anywhere=True)
def get_node_status(_: GetNodeStatus, context: Context) -> Answer:
    """How this node stands, whether it leads or not."""
    node = context.node
    config = node.config
    status = NodeStatus(
        node=node.leadership.node,
        broker=config.broker,
        cluster=config.cluster,
        version=__version__,
        leads=node.leadership.is_certain(),
        log=config.log_name,
        log_facts=_log_facts(config),
        overdue_ms=node.log.overdue_ms(),
        routes=_routes(config),
        routes_held=node.routes.held_until_s > time.monotonic(),
        drained=node.drains.is_drained,
        brokers_gone=_brokers_gone(node.routes, config.broker),
        derived_stores=node.derived_stores(),
        time_ms=now_ms(),
        started_ms=node.started_ms,
    )
    return Answer(body=bodies.encode(status))


def _brokers_gone(routes: RouteStore, ours: str) -> dict[str, int]:
    running = {*routes.brokers, ours}
    return dict(
        Counter(
            broker
            for topic in routes.topics.values()
            for broker, partitions in topic.route.items()
            if partitions and broker not in running
        )
    )


def _log_facts(config: Config) -> dict[str, str]:
    if config.pulsar is not None:
        return {
            "service_url": config.pulsar.service_url,
            "admin_url": config.pulsar.admin_url,
            "namespace": "/".join(namespaces.own(config)),
        }
    disk = shutil.disk_usage(config.data)
    return {
        "flush": config.log.flush,
        "retention_hours": f"{config.log.retention_hours:g}",
        "disk_bytes": str(disk.total),
        "disk_free_bytes": str(disk.free),
    }


def _routes(config: Config) -> str:
    if config.routes is None:
        return "embedded"
    return "zookeeper" if config.routes.startswith(_ZOOKEEPER) else "file"


@handles(StepBack, on_cluster(UPDATE), anywhere=True)
async def step_back(request: StepBack, context: Context) -> Answer:
    """Be the last of the broker's nodes; who leads, lets the next one."""
    await context.node.leadership.step_back(request.successor)
    return Answer()


@handles(GetTopicPlaces, on_topic(GET), anywhere=True)
async def get_topic_places(request: GetTopicPlaces, context: Context) -> Answer:
    """The partitions of a topic's queues, of all brokers that have some."""
    await context.node.routes.catch_up()
    topic = await context.node.routes.find_topic(request.topic)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"No topic in the route store. topic: {request.topic:.200}",
        )
    return Answer(body=bodies.encode(TopicPlaces(topic.route)))
