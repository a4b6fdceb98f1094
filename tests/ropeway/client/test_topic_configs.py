"""How topics are set up, asked of brokers of 4.x and 5.x."""

from __future__ import annotations

import json

import pytest

from ropeway.client import Admin, TopicNotFoundError
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENT, scenario


@scenario
async def test_brokers_of_4_x_tell_of_one_topic_by_telling_of_all():
    """RocketMQ 4.9.7 does not know GET_TOPIC_CONFIG."""
    with_two = json.dumps(
        {
            "topicConfigTable": {
                name: {"topicName": name, "readQueueNums": queues, "perm": 6}
                for name, queues in (("orders", 3), ("payments", 5))
            }
        }
    )
    async with FakeServer() as server, Admin(server.address, config=PATIENT) as admin:
        server.behaviours |= {
            RequestCode.GET_TOPIC_CONFIG: lambda _: Answer(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            ),
            RequestCode.GET_ALL_TOPIC_CONFIG: lambda _: Answer(body=with_two.encode()),
        }
        (found,) = await admin.topic_configs("orders")
        assert (found.topic_name, found.read_queue_nums) == ("orders", 3)
        with pytest.raises(TopicNotFoundError, match="'others' is not on broker b"):
            await admin.topic_configs("others")
