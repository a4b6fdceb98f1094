"""Topics of units, for administrators: listed by their flags.

Source: RouteInfoManager.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors.context import Answer, Context
from ropeway.gateway.processors.needs import GET, LIST, on_every_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.namesrv_admin import (
    GetHasUnitSubTopicList,
    GetHasUnitSubUnunitTopicList,
    GetUnitTopicList,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_UNIT = 1
_UNIT_SUB = 2
"""Bits of a topic's flags: TopicSysFlag.java."""


@handles(GetUnitTopicList, on_every_topic(GET, LIST), anywhere=True)
async def get_unit_topics(_: GetUnitTopicList, context: Context) -> Answer:
    """The topics that are split into units."""
    return await _flagged(context, lambda flags: bool(flags & _UNIT))


@handles(GetHasUnitSubTopicList, on_every_topic(GET, LIST), anywhere=True)
async def get_unit_sub_topics(_: GetHasUnitSubTopicList, context: Context) -> Answer:
    """The topics that units subscribe to."""
    return await _flagged(context, lambda flags: bool(flags & _UNIT_SUB))


@handles(GetHasUnitSubUnunitTopicList, on_every_topic(GET, LIST), anywhere=True)
async def get_unit_sub_ununit_topics(
    _: GetHasUnitSubUnunitTopicList, context: Context
) -> Answer:
    """The topics that units subscribe to and that are not split themselves."""
    return await _flagged(context, lambda flags: flags & 3 == _UNIT_SUB)


async def _flagged(context: Context, wanted: Callable[[int], bool]) -> Answer:
    routes = context.node.routes
    await routes.catch_up()
    found = sorted(
        name
        for name, topic in routes.topics.items()
        if wanted(topic.topic_sys_flag) and context.shows(name)
    )
    return Answer(body=bodies.encode(bodies.TopicList(topic_list=found)))
