"""Concurrent consumption when a broker fails at the wrong moment."""

from ropeway.client import RETRY, ConsumerConfig
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENCE, scenario, until
from tests.ropeway.client.test_pull_request import pulled
from tests.ropeway.client.test_queue_reader import Group

CONFIG = ConsumerConfig(**PATIENCE, retry_delay_s=0.01)


@scenario
async def test_a_message_that_cannot_be_sent_back_is_handled_again_here():
    async with FakeServer(queues=1) as server:
        group = Group(server)
        times = []

        async def handler(message):
            times.append(message.reconsume_times)
            return RETRY

        group.reader._handlers.add("t", handler, None)
        body = stored.encode(
            stored.Message(
                topic="t",
                queue_id=0,
                queue_offset=9,
                message_id=5,
                body=b"x",
                properties="",
            )
        )
        server.behaviours[RequestCode.PULL_MESSAGE] = lambda request: (
            pulled(ResponseCode.SUCCESS, 10, body)
            if request.fields["queueOffset"] == "9" and request.fields["topic"] == "t"
            else None
        )
        sent_back = server.behaviours
        sent_back[RequestCode.CONSUMER_SEND_MSG_BACK] = lambda _: Answer(
            ResponseCode.SYSTEM_ERROR if len(times) < 3 else ResponseCode.SUCCESS
        )
        async with group.reader:
            await until(lambda: len(times) == 3)
        assert times == [0, 1, 2]
        last = server.asked(RequestCode.CONSUMER_SEND_MSG_BACK)[-1].fields
        assert (last["offset"], last["group"], last["originTopic"]) == ("5", "g", "t")
        commits = server.asked(RequestCode.UPDATE_CONSUMER_OFFSET)
        offsets = [
            c.fields["commitOffset"] for c in commits if c.fields["topic"] == "t"
        ]
        assert offsets[-1] == "10"
        assert "9" not in offsets[-1:]
