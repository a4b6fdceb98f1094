"""Messages that a consumer could not handle: again later, or to the dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import TopicsConfig
from ropeway.gateway.wire import bodies, message, message_id, properties
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
from ropeway.routing.api import PERM_READ, Group, Topic
from ropeway.storage.api import LogUnavailableError
from tests.remoting import Remoting, looped, running, until
from tests.requests import pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

FAST = "1s " * 2 + "50s 60s"
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def back(found: message.Message, **changes) -> ConsumerSendMsgBack:
    fields = {
        "offset": found.message_id,
        "group": "g",
        "delay_level": 0,
        "origin_topic": "orders",
        "max_reconsume_times": 16,
    }
    return ConsumerSendMsgBack(**{**fields, **changes})


async def first(client: Remoting, topic: str, **changes) -> message.Message:
    answer = await client.ask(waiting(topic, max_msg_nums=1, **changes))
    assert answer.code == 0, answer
    return answer.messages()[0]


async def original(client: Remoting, **changes) -> message.Message:
    pairs = {"TAGS": "t", "KEYS": "k"}
    await client.ask(sending("orders", pairs=pairs, **changes), b"body")
    return await first(client, "orders")


def end(app, topic: str, queue_id: int = 0) -> int:
    served = app.node.topics.get(topic)
    return served.partitions[queue_id].next_offset if served else 0


@looped
@pytest.mark.parametrize(("level", "stored_at"), [(0, 3), (2, 2), (4, 4), (99, 4)])
async def test_a_message_sent_back_waits_at_its_level(
    tmp_path: Path, level: int, stored_at: int
):
    async with running(tmp_path, delay_levels=FAST) as (app, client):
        found = await original(client)
        answer = await client.ask(back(found, delay_level=level))
        assert (answer.code, answer.fields) == (0, {})
        assert end(app, SCHEDULE, stored_at - 1) == 1
        again = await first(client, SCHEDULE, queue_id=stored_at - 1)
        assert (again.body, again.reconsume_times) == (b"body", 1)
        assert (again.born_ms, again.born_host) == (found.born_ms, found.born_host)
        pairs = properties.parse(again.properties)
        assert pairs["RETRY_TOPIC"] == "orders"
        assert pairs["ORIGIN_MESSAGE_ID"] == message_id.format_offset_msg_id(
            *found.store_host, found.message_id
        )
        assert (pairs["REAL_TOPIC"], pairs["REAL_QID"]) == ("%RETRY%g", "0")
        assert pairs["DELAY"] == str(level or 3)
        assert pairs["WAIT"] == "false"
        assert (pairs["TAGS"], pairs["KEYS"]) == ("t", "k")


@looped
async def test_a_message_can_be_sent_back_again_and_again(tmp_path: Path):
    async with running(tmp_path, delay_levels=FAST) as (app, client):
        found = await original(client)
        origin = message_id.format_offset_msg_id(*found.store_host, found.message_id)
        for times in (1, 2):
            header = back(found, delay_level=1, max_reconsume_times=2)
            assert (await client.ask(header)).code == 0
            again = await first(client, "%RETRY%g", queue_offset=times - 1)
            assert again.reconsume_times == times
            assert message_id.unpack(again.message_id) == (
                True,
                message_id.unpack(again.message_id).partition,
                times - 1,
            )
            pairs = properties.parse(again.properties)
            assert pairs["ORIGIN_MESSAGE_ID"] == origin
            assert pairs["RETRY_TOPIC"] == "orders"
            assert pairs["DELAY"] == "1"
            found = again
        header = back(found, delay_level=1, max_reconsume_times=2)
        assert (await client.ask(header)).code == 0
        dead = await first(client, "%DLQ%g")
        assert (dead.reconsume_times, dead.body) == (3, b"body")
        pairs = properties.parse(dead.properties)
        assert (pairs["RETRY_TOPIC"], pairs["ORIGIN_MESSAGE_ID"]) == ("orders", origin)
        # It waits for nothing.
        assert pairs["DELAY"] == "0"
        assert end(app, "%RETRY%g") == 2


@looped
async def test_a_negative_level_goes_to_the_dead_letters_at_once(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        found = await original(client)
        assert (await client.ask(back(found, delay_level=-1))).code == 0
        assert (await first(client, "%DLQ%g")).body == b"body"
        assert end(app, SCHEDULE, 2) == 0


@looped
async def test_the_group_says_how_often_where_the_request_does_not(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await app.node.groups.put(Group(name="g", retry_max_times=0))
        found = await original(client)
        header = back(found, max_reconsume_times=None)
        assert (await client.ask(header)).code == 0
        assert end(app, "%DLQ%g") == 1


@looped
async def test_a_group_without_retry_queues_drops_what_is_sent_back(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await app.node.groups.put(Group(name="g", retry_queue_nums=0))
        found = await original(client)
        assert (await client.ask(back(found))).code == 0
        assert app.node.topics.get("%RETRY%g") is None
        assert end(app, SCHEDULE, 2) == 0


@looped
async def test_what_cannot_be_sent_back_is_refused(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        found = await original(client)
        gone = back(found, offset=found.message_id + 1)
        assert (await client.ask(gone)).code == ResponseCode.SYSTEM_ERROR
        answer = await client.ask(back(found, group="bad name"))
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        closed = Topic(
            name="%RETRY%g", read_queue_nums=1, write_queue_nums=1, perm=PERM_READ
        )
        await app.node.topics.put(closed)
        assert (await client.ask(back(found))).code == ResponseCode.NO_PERMISSION
        assert end(app, SCHEDULE, 2) == 0
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path, topics=topics) as (_, client):
        answer = await client.ask(back(found, group="other"))
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


@looped
async def test_what_the_log_refuses_is_not_sent_back(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        found = await original(client)
        served = app.node.topics.get(SCHEDULE)
        true = served.partitions[2]

        class Refusing:
            next_offset = 0

            def append(self, _records, _store_ms, _done):
                raise LogUnavailableError("disk full")

        served.partitions[2] = Refusing()
        answer = await client.ask(back(found))
        assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
        served.partitions[2] = true
        assert (await client.ask(back(found))).code == 0


@looped
async def test_a_retry_sent_as_a_message_waits_or_is_dead(tmp_path: Path):
    """What Java does when sending back failed."""
    async with running(tmp_path) as (app, client):
        pairs = {"DELAY": "4"}
        retried = sending(
            "%RETRY%g", pairs=pairs, reconsume_times=16, max_reconsume_times=16
        )
        assert (await client.ask(retried, b"x")).code == 0
        assert end(app, SCHEDULE, 3) == 1
        spent = sending(
            "%RETRY%g", pairs=pairs, reconsume_times=17, max_reconsume_times=16
        )
        assert (await client.ask(spent, b"dead")).code == 0
        dead = await first(client, "%DLQ%g")
        assert dead.body == b"dead"
        assert end(app, SCHEDULE, 3) == 1


@looped
async def test_a_retry_that_does_not_say_how_often_it_came_has_never_come(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        retried = sending(
            "%RETRY%g",
            pairs={"DELAY": "4"},
            reconsume_times=None,
            max_reconsume_times=0,
        )
        assert (await client.ask(retried, b"x")).code == 0
        assert end(app, SCHEDULE, 3) == 1


@looped
async def test_a_retry_of_a_group_that_consumes_in_order_is_dead(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        locked = bodies.LockBatchBody(
            consumer_group="g",
            client_id="me",
            mq_set=[bodies.MessageQueue("broker-0", 0, "orders")],
        )
        asked = RequestCode.LOCK_BATCH_MQ
        await client.ask(asked, bodies.encode(locked), fields={})
        retried = sending("%RETRY%g", reconsume_times=1, pairs={"DELAY": "4"})
        assert (await client.ask(retried, b"x")).code == 0
        await until(lambda: end(app, "%DLQ%g") == 1)
        assert (await client.ask(pulling("%RETRY%g"))).code == 19


@looped
async def test_a_message_that_says_it_came_very_often_is_counted_no_further(
    tmp_path: Path,
):
    """What a sender says was counted on, to a number that is not one."""
    async with running(tmp_path, delay_levels="1s") as (_, client):
        most = (1 << 31) - 1
        asked = sending("orders", reconsume_times=most, queue_id=0)
        assert (await client.ask(asked, b"x")).code == 0
        found = (await client.ask(waiting("orders"))).messages()[0]
        assert (await client.ask(back(found, max_reconsume_times=16))).code == 0
        dead = (await client.ask(waiting("%DLQ%g"))).messages()[0]
        assert dead.reconsume_times == most


@looped
async def test_nobody_has_a_message_tried_for_ever(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        for times, code in ((0, 0), (-1, ResponseCode.MESSAGE_ILLEGAL)):
            asked = sending("orders", reconsume_times=times)
            assert (await client.ask(asked, b"x")).code == code
