"""Taking a broker out of use for sending, topic by topic in its routes, and back.

Producers see it with their next look at a route, and go to other brokers; consumers
read on. A real name server forgets it at the broker's next change, and gives every
topic both permissions back; here it holds until it is taken back, for topics that come
later too, and each topic has its own permission then.

Source: RouteInfoManager.operateWritePermOfBroker, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.gateway.node.placement import is_drained
from ropeway.gateway.processors.needs import UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire.commands.namesrv_admin import (
    AddWritePerm,
    AddWritePermReply,
    WipeWritePerm,
    WipeWritePermReply,
)
from ropeway.routing.api import PERM_WRITE

if TYPE_CHECKING:
    from ropeway.gateway.processors.context import Context
    from ropeway.routing.api import RouteStore

_WIPED = "wiped"


def perm_on(routes: RouteStore, broker: str, perm: int) -> int:
    """What a topic's permission is on a broker."""
    if (names.WRITE_PERMISSION, broker) in routes.settings or is_drained(
        routes, broker
    ):
        return perm & ~PERM_WRITE
    return perm


@handles(WipeWritePerm, on_cluster(UPDATE), anywhere=True)
async def wipe(request: WipeWritePerm, context: Context) -> WipeWritePermReply:
    """Show no topic of a broker as writable."""
    topics = await _set(request.broker_name, _WIPED, context)
    return WipeWritePermReply(wipe_topic_count=topics)


@handles(AddWritePerm, on_cluster(UPDATE), anywhere=True)
async def add(request: AddWritePerm, context: Context) -> AddWritePermReply:
    """Show a broker's topics as they are set up."""
    topics = await _set(request.broker_name, None, context)
    return AddWritePermReply(add_topic_count=topics)


async def _set(broker: str, value: str | None, context: Context) -> int:
    """Keep it in the routes; the number of topics that the broker has."""
    routes = context.node.routes
    await routes.catch_up()
    count = sum(broker in topic.route for topic in routes.topics.values())
    if count:
        await routes.put_setting(names.WRITE_PERMISSION, broker, value)
    return count
