"""Waiting pops: who is woken by what, and what ends the waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway import composition
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import Notification, NotificationReply
from ropeway.gateway.wire.commands.send import SendBatchMessage
from tests.gateway.pop.rig import GROUP, TOPIC, Consumer, another, popped, rigged
from tests.remoting import looped, until
from tests.requests import batch_of, sending

if TYPE_CHECKING:
    from pathlib import Path

POLL_S = 60
POLL = {"poll_time": POLL_S * 1000}


@looped
async def test_a_message_wakes_who_waits_longest_and_nobody_else(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig, another(rig) as sender:
        client, header = rig.consumer.client, rig.consumer.header
        any_queue = client.send(header(queue_id=-1, **POLL))
        first = client.send(header(queue_id=0, **POLL))
        second = client.send(header(queue_id=1, **POLL))
        await until(lambda: len(rig.pop.polling) == 3)
        (connection, _) = rig.app.server.listeners[0].connections
        assert rig.pop.polling.count((GROUP, TOPIC), -1) == 1
        await sender.send(1)
        assert popped(await any_queue).offsets == [0]
        await sender.send(1)
        assert popped(await first).offsets == [1]
        assert not second.done()
        await sender.send(1, queue_id=1)
        assert popped(await second).offsets == [0]
        assert len(rig.pop.polling) == 0
        assert connection.in_flight == 0


@looped
async def test_many_messages_wake_as_many_as_it_takes(tmp_path: Path):
    async with rigged(tmp_path) as rig, another(rig) as sender:
        waiting = [
            rig.consumer.client.send(rig.consumer.header(max_msg_nums=2, **POLL))
            for _ in range(5)
        ]
        await until(lambda: len(rig.pop.polling) == 5)
        plain = sending(TOPIC)
        fields = {name: getattr(plain, name) for name in plain.__struct_fields__}
        eight = SendBatchMessage(**{**fields, "batch": True})
        bodies = [b"%d" % number for number in range(8)]
        assert (await sender.client.ask(eight, batch_of(*bodies))).code == 0
        async with asyncio.timeout(POLL_S / 2):
            offsets = [popped(await one).offsets for one in waiting[:4]]
        assert offsets == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert len(rig.pop.polling) == 1
        assert not waiting[4].done()


@looped
async def test_only_a_match_is_heard_of(tmp_path: Path):
    async with rigged(tmp_path) as rig, another(rig) as sender:
        header = rig.consumer.header
        tagged = rig.consumer.client.send(header(exp="b", **POLL))
        other = Consumer(rig.consumer.client, "others")
        by_sql = other.client.send(
            other.header(exp="price > 9", exp_type="SQL92", **POLL)
        )
        await until(lambda: len(rig.pop.polling) == 2)
        await sender.send(3, pairs={"TAGS": "a", "price": "1"})
        assert not tagged.done()
        assert not by_sql.done()
        # The group has passed over what it does not want.
        await until(lambda: rig.committed() == 3)
        await sender.send(1, pairs={"TAGS": "b", "price": "10"})
        assert popped(await tagged).offsets == [3]
        assert popped(await by_sql).offsets == [3]


@looped
async def test_waiting_ends_in_time_and_when_too_many_wait(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(composition, "MAX_POLLING", 1)
    async with rigged(tmp_path) as rig:
        held = rig.consumer.client.send(rig.consumer.header(**POLL))
        await until(lambda: len(rig.pop.polling) == 1)
        full = await rig.consumer.pop(**POLL)
        assert full.frame.code == ResponseCode.POLLING_FULL
        rig.pop.polling.release_all()
        assert popped(await held).frame.code == ResponseCode.POLLING_TIMEOUT
        late = await rig.consumer.pop(poll_time=300)
        assert late.frame.code == ResponseCode.POLLING_TIMEOUT
        assert late.reply.msg_offset_info == ""
        assert len(rig.pop.polling) == 0


@looped
async def test_a_connection_that_ends_takes_its_pops_with_it(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        async with another(rig) as gone:
            gone.client.send(gone.header(**POLL))
            await until(lambda: len(rig.pop.polling) == 1)
        await until(lambda: len(rig.pop.polling) == 0)
        await rig.consumer.send(1)
        await rig.consumer.take(1)


@looped
async def test_what_ends_group_topic_or_node_answers_who_waits(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        header = rig.consumer.header
        waiting = rig.consumer.client.send(header(**POLL))
        await until(lambda: len(rig.pop.polling) == 1)
        await rig.app.node.topics.delete(TOPIC)
        assert (await waiting).code == ResponseCode.POLLING_TIMEOUT
        refused = await rig.consumer.client.ask(header(**POLL))
        assert refused.code == ResponseCode.TOPIC_NOT_EXIST
        await rig.app.node.topics.ensure_derived(TOPIC, 1)
        waiting = rig.consumer.client.send(header(**POLL))
        await until(lambda: len(rig.pop.polling) == 1)
        rig.pop.polling.close()
        assert (await waiting).code == ResponseCode.POLLING_TIMEOUT
        late = await rig.consumer.client.ask(header(**POLL))
        assert late.code == ResponseCode.POLLING_FULL


@looped
async def test_new_queues_are_watched_by_who_comes_next(tmp_path: Path):
    async with rigged(tmp_path) as rig, another(rig) as sender:
        await rig.consumer.pop(queue_id=-1)
        await rig.app.node.topics.ensure_derived(TOPIC, 3)
        waiting = rig.consumer.client.send(rig.consumer.header(queue_id=-1, **POLL))
        await until(lambda: len(rig.pop.polling) == 1)
        await sender.send(1, queue_id=2)
        assert popped(await waiting).messages[0].queue_id == 2


@looped
async def test_a_notification_takes_nothing(tmp_path: Path):
    async with rigged(tmp_path) as rig, another(rig) as sender:
        asked = Notification(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=-1,
            poll_time=60_000,
            born_time=0,
        )
        watching = rig.consumer.client.send(asked)
        await until(lambda: len(rig.pop.polling) == 1)
        waiting = rig.consumer.client.send(rig.consumer.header(max_msg_nums=1, **POLL))
        await until(lambda: len(rig.pop.polling) == 2)
        await sender.send(1)
        assert (await watching).read(NotificationReply).has_msg
        assert popped(await waiting).offsets == [0]
