"""Pulls, and what readers make of their answers."""

import asyncio

from ropeway.client import ConsumerConfig, PushConsumer
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENCE, Inbox, scenario, until

CONFIG = ConsumerConfig(**PATIENCE, rebalance_retry_s=0.01, retry_delay_s=0.01)


def pulled(code: int, next_offset: int, body: bytes = b"") -> Answer:
    fields = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(next_offset),
        "minOffset": "0",
        "maxOffset": "99",
    }
    return Answer(code, fields, body)


def stored_at(offset: int) -> bytes:
    return stored.encode(
        stored.Message(
            topic="t",
            queue_id=0,
            queue_offset=offset,
            message_id=offset,
            body=b"m%d" % offset,
            properties="",
        )
    )


async def read(answers: dict[int, Answer], done) -> FakeServer:
    """Let a consumer of one queue meet an answer for each offset that it asks for."""
    async with FakeServer(queues=1) as server:
        inbox = Inbox()
        reader = PushConsumer(server.address, "g", config=CONFIG)
        reader.subscribe("t", "*", inbox)
        committed = {"offset": "0"}

        def note(request):
            committed["offset"] = request.fields["commitOffset"]
            return Answer()

        def answer(request):
            if request.fields["topic"] != "t":
                return None
            return answers.get(int(request.fields["queueOffset"]))

        server.behaviours |= {
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda _: Answer(
                body=f'{{"consumerIdList":["{reader.client_id}"]}}'.encode()
            ),
            RequestCode.QUERY_CONSUMER_OFFSET: lambda _: Answer(fields=dict(committed)),
            RequestCode.UPDATE_CONSUMER_OFFSET: note,
            RequestCode.PULL_MESSAGE: answer,
        }
        async with reader:
            await until(lambda: done(server, inbox))
        return server


def offsets(server: FakeServer) -> list[int]:
    pulls = server.asked(RequestCode.PULL_MESSAGE)
    return [int(p.fields["queueOffset"]) for p in pulls if p.fields["topic"] == "t"]


def check(answers: dict[int, Answer], wanted: list[int]) -> None:
    """The consumer asks for these offsets, one after the other."""

    @scenario
    async def asks() -> None:
        server = await read(answers, lambda server, _: offsets(server) >= wanted)
        assert offsets(server)[: len(wanted)] == wanted

    asks()


def test_messages_are_handled_and_reading_goes_on_behind_them():
    @scenario
    async def asks() -> None:
        found = pulled(ResponseCode.SUCCESS, 2, stored_at(0) + stored_at(1))
        server = await read({0: found}, lambda _, inbox: len(inbox.bodies) == 2)
        assert 2 in offsets(server)

    asks()


def test_nothing_new_or_nothing_wanted_moves_reading_on():
    check(
        {
            0: pulled(ResponseCode.PULL_RETRY_IMMEDIATELY, 40),
            40: pulled(ResponseCode.PULL_NOT_FOUND, 41),
        },
        [0, 40, 41],
    )


def test_an_offset_that_is_gone_is_corrected_and_stored():
    check({0: pulled(ResponseCode.PULL_OFFSET_MOVED, 17)}, [0, 17])


def test_a_failed_pull_is_tried_again_at_the_same_place():
    check({0: Answer(ResponseCode.SYSTEM_ERROR, remark="no")}, [0, 0, 0])


def test_an_answer_that_cannot_be_read_loses_nothing():
    check({0: pulled(ResponseCode.SUCCESS, 5, b"\0\0\0\1")}, [0, 0])


@scenario
async def test_a_pull_carries_the_subscription_and_what_was_done():
    found = pulled(ResponseCode.SUCCESS, 1, stored_at(0))
    server = await read({0: found}, lambda server, _: 1 in offsets(server))
    await asyncio.sleep(0)
    first = server.asked(RequestCode.PULL_MESSAGE)[0].fields
    assert (first["subscription"], first["expressionType"]) == ("*", "TAG")
    assert int(first["sysFlag"]) & 0x6 == 0x6
    assert first["suspendTimeoutMillis"] == "15000"
