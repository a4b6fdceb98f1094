"""How brokers have a topic set up; those of 4.x tell of all topics or of none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client.errors import TopicNotFoundError
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetAllTopicConfig, GetTopicConfig

if TYPE_CHECKING:
    from ropeway.client.admin_requests import AskingClient


class _Topics(Struct, rename="camel", frozen=True):
    topic_config_table: dict[str, bodies.TopicConfig]


async def read(admin: AskingClient, topic: str) -> list[bodies.TopicConfig]:
    """Ask each broker that has a topic, in the order of their names.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A server cannot be reached.
    """
    answers = await admin.ask_of_topic(
        topic,
        GetTopicConfig(topic=topic),
        expect=(ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED),
    )
    return [
        answer.json(bodies.TopicConfig)
        if answer.code == ResponseCode.SUCCESS
        else await _among_all(admin, topic, broker)
        for broker, answer in answers.items()
    ]


async def _among_all(
    admin: AskingClient, topic: str, broker: str
) -> bodies.TopicConfig:
    answer = await admin.ask_broker(broker, GetAllTopicConfig())
    found = answer.json(_Topics).topic_config_table.get(topic)
    if found is None:
        raise TopicNotFoundError(f"topic {topic!r} is not on broker {broker}")
    return found
