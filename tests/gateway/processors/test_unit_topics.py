"""Topics of units are listed by their flags."""

import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.namesrv_admin import (
    GetHasUnitSubTopicList,
    GetHasUnitSubUnunitTopicList,
    GetUnitTopicList,
)
from tests.remoting import looped, running


def creating(topic: str, **changes) -> CreateTopic:
    fields = {"read_queue_nums": 1, "write_queue_nums": 1, "perm": 6, **changes}
    return CreateTopic(topic=topic, default_topic="TBW102", **fields)


@looped
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (GetUnitTopicList(), ["both", "unit"]),
        (GetHasUnitSubTopicList(), ["both", "sub"]),
        (GetHasUnitSubUnunitTopicList(), ["sub"]),
    ],
    ids=["units", "subscribed", "subscribed and no units"],
)
async def test_topics_of_units_are_listed_by_their_flags(tmp_path, header, expected):
    async with running(tmp_path) as (_, client):
        for flags, topic in enumerate(["none", "unit", "sub", "both"]):
            await client.ask(creating(topic, topic_sys_flag=flags))
        body = (await client.ask(header)).body
        assert bodies.decode(bodies.TopicList, body).topic_list == expected
