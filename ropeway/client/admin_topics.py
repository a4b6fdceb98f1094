"""Topics broker by broker: what they hold, where their queues are, making them grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.client.errors import AdminError, BadResponseError, TopicNotFoundError
from ropeway.client.lags import QueueSpan, read_spans
from ropeway.client.routes import DEFAULT_TOPIC
from ropeway.gateway.wire import admin_bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic, DeleteTopic, GetTopicStats
from ropeway.gateway.wire.commands.broker_admin import ViewBrokerStatsData
from ropeway.gateway.wire.commands.nodes import GetTopicPlaces, TopicPlaces

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.routes import Route
    from ropeway.gateway.wire.bodies import TopicConfig

_PUT = "TOPIC_PUT_NUMS"
_PUT_BYTES = "TOPIC_PUT_SIZE"
_GET = "GROUP_GET_NUMS"


class Rate(Struct, frozen=True):
    """How much was counted, on all brokers."""

    per_s: float
    """In the last minute."""
    last_hour: int
    last_day: int


async def stats(admin: Admin, topic: str) -> list[QueueSpan]:
    """What each queue of a topic holds, and when its newest message was stored.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    spans: list[QueueSpan] = []
    answers = await admin.ask_of_topic(topic, GetTopicStats(topic=topic))
    for answer in answers.values():
        try:
            spans += read_spans(answer.body)
        except msgspec.DecodeError as error:
            raise BadResponseError(f"{answer.address}: {error}") from error
    return sorted(spans, key=lambda span: span.queue)


async def put_rate(admin: Admin, topic: str) -> Rate:
    """How much is sent to a topic.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached.
    """
    return await _rate(admin, topic, ViewBrokerStatsData(_PUT, topic))


async def put_bytes(admin: Admin, topic: str) -> Rate:
    """How many bytes are sent to a topic.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached.
    """
    return await _rate(admin, topic, ViewBrokerStatsData(_PUT_BYTES, topic))


def approximate_bytes(messages: int, in_day: int, in_bytes_day: int) -> int | None:
    """Estimate how many bytes messages of a topic have.

    Their mean size is taken to be that of what was sent in the last day.

    Args:
        messages: How many there are.
        in_day: How many were sent in the last day.
        in_bytes_day: How many bytes those had.

    Returns:
        None where there are messages, and none was counted in the last day.
    """
    if not messages:
        return 0
    if not (in_day and in_bytes_day):
        return None
    return round(messages * in_bytes_day / in_day)


async def lag_bytes(admin: Admin, topic: str, lag: int) -> int | None:
    """Estimate how many bytes a lag in a topic has, as `approximate_bytes` does.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached.
    """
    if not lag:
        return 0
    rate, in_bytes = await put_rate(admin, topic), await put_bytes(admin, topic)
    return approximate_bytes(lag, rate.last_day, in_bytes.last_day)


async def get_rate(admin: Admin, group: str, topic: str) -> Rate:
    """How much a group is given of a topic.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached.
    """
    return await _rate(admin, topic, ViewBrokerStatsData(_GET, f"{topic}@{group}"))


async def _rate(admin: Admin, topic: str, asked: ViewBrokerStatsData) -> Rate:
    answers = await admin.ask_of_topic(
        topic,
        asked,
        # What a broker says that has counted nothing.
        expect=(ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR),
    )
    counted = [
        answer.json(admin_bodies.BrokerStats)
        for answer in answers.values()
        if answer.code == ResponseCode.SUCCESS
    ]
    return Rate(
        round(sum(one.stats_minute.tps for one in counted), 2),
        sum(one.stats_hour.sum for one in counted),
        sum(one.stats_day.sum for one in counted),
    )


async def places(admin: Admin, topic: str) -> dict[str, list[int]]:
    """The partitions of a topic's queues, by the broker's name.

    Only Ropeway tells.

    Raises:
        ResponseError: There is no such topic, or this is no Ropeway.
        RemotingError: No name server answers.
    """
    answer = await admin.ask_name_server(GetTopicPlaces(topic=topic))
    return answer.json(TopicPlaces).places


async def configs(admin: Admin, topic: str) -> dict[str, TopicConfig]:
    """How a topic is set up, by the broker's name.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    names = sorted((await admin.route(topic)).brokers)
    return dict(zip(names, await admin.topic_configs(topic), strict=True))


async def create_on(
    admin: Admin, topic: str, broker: str, queues: int, perm: int = 6
) -> None:
    """Make a topic on one broker, which does not have it yet.

    Args:
        admin: Asks.
        topic: The topic.
        broker: The broker's name.
        queues: How many queues it gets there.
        perm: Sum of 4 read, 2 write.

    Raises:
        AdminError: The broker has it, or there is no such broker.
        ResponseError: The broker refused.
        RemotingError: It cannot be reached.
    """
    route = await _route_if_any(admin, topic)
    if route and broker in route.brokers:
        raise AdminError(f"topic {topic} is on broker {broker} already; expand it")
    await _put(admin, topic, broker, queues=queues, perm=perm, order=False)


async def queues_on(admin: Admin, topic: str, broker: str) -> int:
    """How many queues a topic has on a broker where they can be deleted.

    Raises:
        AdminError: It is not there, or nowhere else.
        TopicNotFoundError: There is no such topic.
        RemotingError: No name server answers.
    """
    found = await admin.route(topic)
    if broker not in found.brokers:
        raise AdminError(
            f"topic {topic} is not on broker {broker}, or no node of that runs; "
            f"it is on {', '.join(sorted(found.brokers))}"
        )
    if len(found.brokers) == 1:
        raise AdminError(
            f"topic {topic} is on broker {broker} alone; delete the topic instead "
            f"(ropeway topic delete {topic})"
        )
    return sum(queue.broker_name == broker for queue in found.read_queues)


async def delete_from(admin: Admin, topic: str, broker: str) -> int:
    """Delete a topic's queues on one broker, with their messages; others keep theirs.

    Args:
        admin: Asks.
        topic: The topic.
        broker: The broker's name; it must run.

    Returns:
        How many queues it had there.

    Raises:
        AdminError: It is not there, or nowhere else.
        TopicNotFoundError: There is no such topic.
        RemotingError: The broker cannot be reached, or refused.
    """
    count = await queues_on(admin, topic, broker)
    await admin.ask_broker(broker, DeleteTopic(topic=topic))
    return count


async def expand(
    admin: Admin, topic: str, queues: int, broker: str | None = None
) -> dict[str, tuple[int, int]]:
    """Give a topic more queues, on one broker or on all that have it.

    The new queues come behind the others, whose messages stay where they are.

    Args:
        admin: Asks.
        topic: The topic.
        queues: How many queues it is to have on each broker.
        broker: Only on this one.

    Returns:
        How many queues there were and are, by the broker's name.

    Raises:
        AdminError: It has as many there, or more, or is not there at all.
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    found = await configs(admin, topic)
    if broker is not None:
        if broker not in found:
            raise AdminError(
                f"topic {topic} is not on broker {broker}; "
                f"it is on {', '.join(sorted(found))}"
            )
        found = {broker: found[broker]}
    route = await admin.route(topic)
    grown = {}
    for name, config in found.items():
        before = sum(queue.broker_name == name for queue in route.write_queues)
        before = before or config.write_queue_nums
        if before >= queues:
            raise AdminError(
                f"topic {topic} has {before} queues on broker {name}; "
                f"allowed: more than that, not {queues}"
            )
        grown[name] = (before, queues)
    for name in grown:
        config = found[name]
        await _put(
            admin, topic, name, queues=queues, perm=config.perm, order=config.order
        )
    return grown


async def update(
    admin: Admin, topic: str, *, queues: int | None = None, perm: int | None = None
) -> None:
    """Change a topic on each broker that has it; what is not named stays there.

    Args:
        admin: Asks.
        topic: The topic.
        queues: How many queues it is to have on each broker.
        perm: Sum of 4 read, 2 write.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused; others may have done it.
    """
    for broker, config in (await configs(admin, topic)).items():
        header = CreateTopic(
            topic=topic,
            default_topic=DEFAULT_TOPIC,
            read_queue_nums=queues or config.read_queue_nums,
            write_queue_nums=queues or config.write_queue_nums,
            perm=config.perm if perm is None else perm,
            topic_filter_type=str(config.topic_filter_type),
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
        )
        await admin.ask_broker(broker, header)


async def lead_writes(
    admin: Admin,
    topic: str,
    writes: str,
    hold: str | None = None,
    *,
    ends: str | None = None,
) -> None:
    """Have a Ropeway store producers' messages of a topic elsewhere.

    Args:
        admin: Asks.
        topic: One that migrates; one broker has it.
        writes: Where, as of `CreateTopic.writes`.
        hold: The name of the moment in which nobody stores them.
        ends: How far the source has each queue, joined by commas.

    Raises:
        TopicNotFoundError: There is no such topic.
        ResponseError: It refused: that is not the next step.
        RemotingError: The broker cannot be reached.
    """
    ((broker, config),) = (await configs(admin, topic)).items()
    header = CreateTopic(
        topic=topic,
        default_topic=DEFAULT_TOPIC,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        writes=writes,
        hold=hold,
        ends=ends,
    )
    await admin.ask_broker(broker, header)


async def _put(
    admin: Admin, topic: str, broker: str, *, queues: int, perm: int, order: bool
) -> None:
    header = CreateTopic(
        topic=topic,
        default_topic=DEFAULT_TOPIC,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=perm,
        order=order,
    )
    await admin.ask_broker(broker, header)


async def _route_if_any(admin: Admin, topic: str) -> Route | None:
    try:
        return await admin.route(topic)
    except TopicNotFoundError:
        return None
