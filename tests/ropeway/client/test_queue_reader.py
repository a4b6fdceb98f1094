"""Where readers start, and how queues are given up."""

import pytest

from ropeway.client import ConsumeFrom, ConsumerConfig, PushConsumer
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.ropeway.client.fake_server import Answer, FakeServer
from tests.ropeway.client.scenario import PATIENCE, Inbox, scenario, until

CONFIG = ConsumerConfig(**PATIENCE, rebalance_retry_s=0.01, rebalance_interval_s=0.05)
NOT_FOUND = Answer(ResponseCode.QUERY_NOT_FOUND)


def offset(number: int) -> Answer:
    return Answer(fields={"offset": str(number)})


class Group:
    """A group at a fake broker, whose members the test chooses."""

    def __init__(self, server: FakeServer, **options) -> None:
        self.server = server
        self.reader = PushConsumer(server.address, "g", config=CONFIG, **options)
        self.reader.subscribe("t", "*", Inbox())
        self.members = [self.reader.client_id]
        server.behaviours |= {
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda _: Answer(
                body=str({"consumerIdList": self.members}).replace("'", '"').encode()
            ),
            RequestCode.QUERY_CONSUMER_OFFSET: lambda _: NOT_FOUND,
            RequestCode.GET_MIN_OFFSET: lambda _: offset(3),
            RequestCode.GET_MAX_OFFSET: lambda _: offset(9),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: lambda _: offset(5),
            RequestCode.PULL_MESSAGE: lambda _: None,
        }

    def pulls(self, topic: str) -> list[int]:
        pulls = self.server.asked(RequestCode.PULL_MESSAGE)
        return [
            int(p.fields["queueOffset"]) for p in pulls if p.fields["topic"] == topic
        ]


@pytest.mark.parametrize(
    ("start", "stored", "first"),
    [
        (ConsumeFrom.LAST_OFFSET, NOT_FOUND, 9),
        (ConsumeFrom.FIRST_OFFSET, NOT_FOUND, 3),
        (ConsumeFrom.TIMESTAMP, NOT_FOUND, 5),
        (ConsumeFrom.LAST_OFFSET, offset(7), 7),
    ],
)
def test_a_group_starts_where_it_is_told_unless_it_was_there_before(
    start, stored, first
):
    @scenario
    async def check() -> None:
        async with FakeServer(queues=1) as server:
            group = Group(server, consume_from=start)
            server.behaviours[RequestCode.QUERY_CONSUMER_OFFSET] = lambda _: stored
            async with group.reader:
                await until(lambda: group.pulls("t") == [first])

    check()


@scenario
async def test_retries_are_read_from_their_beginning():
    async with FakeServer(queues=1) as server:
        group = Group(server)
        async with group.reader:
            await until(lambda: group.pulls("%RETRY%g") == [0])


@scenario
async def test_a_queue_whose_start_is_unknown_is_not_read():
    async with FakeServer(queues=1) as server:
        group = Group(server)
        broken = Answer(ResponseCode.SYSTEM_ERROR)
        server.behaviours[RequestCode.QUERY_CONSUMER_OFFSET] = lambda _: broken
        async with group.reader:
            asked = RequestCode.QUERY_CONSUMER_OFFSET
            await until(lambda: len(server.asked(asked)) > 4)
            assert group.reader.queues == ()
            server.behaviours[asked] = lambda _: offset(2)
            await until(lambda: group.pulls("t") == [2])


@scenario
async def test_a_lost_queue_is_stored_before_it_is_forgotten():
    async with FakeServer(queues=2) as server:
        group = Group(server)
        server.behaviours[RequestCode.QUERY_CONSUMER_OFFSET] = lambda _: offset(4)
        moved = {
            "suggestWhichBrokerId": "0",
            "nextBeginOffset": "6",
            "minOffset": "0",
            "maxOffset": "6",
        }
        server.behaviours[RequestCode.PULL_MESSAGE] = lambda request: (
            Answer(ResponseCode.PULL_NOT_FOUND, moved)
            if request.fields["queueOffset"] == "4"
            else None
        )
        async with group.reader:
            await until(lambda: group.pulls("t").count(6) == 2)
            group.members.append("zzz")
            await until(lambda: sum(q.topic == "t" for q in group.reader.queues) == 1)
            stored = {
                (request.fields["topic"], request.fields["queueId"])
                for request in server.asked(RequestCode.UPDATE_CONSUMER_OFFSET)
                if request.fields["commitOffset"] == "6"
            }
            assert ("t", "1") in stored


@scenario
async def test_a_broker_that_does_not_know_us_takes_nothing_away():
    async with FakeServer(queues=2) as server:
        group = Group(server)
        async with group.reader:
            await until(lambda: len(group.pulls("t")) == 2)
            held = set(group.reader.queues)
            group.members.clear()
            asked = len(server.asked(RequestCode.GET_CONSUMER_LIST_BY_GROUP))
            await until(
                lambda: (
                    len(server.asked(RequestCode.GET_CONSUMER_LIST_BY_GROUP))
                    > asked + 4
                )
            )
            assert set(group.reader.queues) == held
