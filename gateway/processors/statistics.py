"""How much is written and read, by topic and by group.

Source: AdminBrokerProcessor.viewBrokerStatsData, RocketMQ 5.5.0.
"""

from __future__ import annotations

from ropeway.common.clock import now_ms
from ropeway.gateway.node.traffic import (
    COUNTED,
    GROUP_GET_NUMS,
    TOPIC_PUT_NUMS,
    TOPIC_PUT_SIZE,
)
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.needs import GET, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.broker_admin import ViewBrokerStatsData


@handles(ViewBrokerStatsData, on_cluster(GET))
async def view_stats(request: ViewBrokerStatsData, context: Context) -> Answer:
    """One count in the last minute, hour and day."""
    name, of = key = request.stats_name, request.stats_key
    traffic = context.node.traffic
    if name in (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE, GROUP_GET_NUMS):
        topic = context.node.topics.get(of.partition("@")[0])
        if topic is not None:
            traffic.look_at(topic)
    else:
        await traffic.look()
    at_ms = now_ms()
    if not traffic.day.sum(key, at_ms):
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            f"The stats <{name:.100}> <{of:.300}> not exist: nothing was counted in "
            f"the last day; counted are {', '.join(COUNTED)}",
        )
    items = [
        admin_bodies.StatsItem(sum=period.sum(key, at_ms), tps=period.rate(key, at_ms))
        for period in (traffic.minute, traffic.hour, traffic.day)
    ]
    return Answer(body=bodies.encode(admin_bodies.BrokerStats(*items)))
