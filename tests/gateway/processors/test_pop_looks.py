"""Looking without popping: peeks, notifications, and who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway import composition
from ropeway.gateway.pop import pop_dispatch
from ropeway.gateway.wire import message
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import (
    Notification,
    NotificationReply,
    PeekMessage,
    PollingInfo,
    PollingInfoReply,
)
from tests.gateway.pop.rig import GROUP, RETRY_V1, TOPIC, another, rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


def peeking(**changes) -> PeekMessage:
    fields = {
        "consumer_group": GROUP,
        "topic": TOPIC,
        "queue_id": -1,
        "max_msg_nums": 32,
        **changes,
    }
    return PeekMessage(**fields)


def notifying(**changes) -> Notification:
    fields = {
        "consumer_group": GROUP,
        "topic": TOPIC,
        "queue_id": -1,
        "poll_time": 0,
        "born_time": 0,
        **changes,
    }
    return Notification(**fields)


async def has_message(rig, **changes) -> bool:
    answer = await rig.consumer.client.ask(notifying(**changes))
    return answer.read(NotificationReply).has_msg


@looped
async def test_a_peek_shows_what_a_pop_would_get_and_takes_nothing(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig:
        await rig.consumer.send(3)
        await rig.consumer.send(2, queue_id=1)
        await rig.retried(RETRY_V1, 1)
        for _ in range(2):
            answer = await rig.consumer.client.ask(peeking())
            assert (answer.code, answer.remark) == (0, "FOUND")
            assert answer.fields == {
                "popTime": "0",
                "invisibleTime": "0",
                "reviveQid": "0",
                "restNum": "6",
            }
            assert len(answer.messages()) == 6
        few = await rig.consumer.client.ask(peeking(max_msg_nums=2))
        assert len(few.messages()) == 2
        await rig.consumer.take(6, queue_id=-1)
        empty = await rig.consumer.client.ask(peeking())
        assert (empty.code, empty.remark) == (19, "NO_MESSAGE_IN_QUEUE")
        assert empty.fields["restNum"] == "0"


@looped
async def test_a_peek_brings_no_more_bytes_than_one_answer_of_all_queues_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path, queues=2) as rig:
        for queue_id in (0, 1):
            await rig.consumer.send(3, queue_id=queue_id)
        all_ = (await rig.consumer.client.ask(peeking())).messages()
        assert len(all_) == 6
        size = len(message.encode(all_[0]))
        monkeypatch.setattr(pop_dispatch, "MAX_BYTES", 3 * size)
        few = (await rig.consumer.client.ask(peeking())).messages()
        # Of each queue that is looked at the first comes always.
        assert sorted(one.queue_offset for one in few) == [0, 0, 1, 2]


@looped
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "absent"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queue_id": 1}, ResponseCode.INVALID_PARAMETER),
        ({"consumer_group": "a b"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
    ],
)
async def test_what_cannot_be_looked_at_is_refused(tmp_path: Path, changes, code):
    async with rigged(tmp_path) as rig:
        fields = {"consumer_group": GROUP, "topic": TOPIC, "queue_id": 0, **changes}
        ask = rig.consumer.client.ask
        assert (await ask(peeking(**changes))).code == code
        assert (await ask(notifying(**changes))).code == code
        assert (await ask(PollingInfo(**fields))).code == code
        too_many = await ask(peeking(max_msg_nums=33))
        assert too_many.code == ResponseCode.INVALID_PARAMETER


@looped
async def test_a_notification_says_whether_there_is_something(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig:
        assert not await has_message(rig)
        await rig.consumer.send(1, queue_id=1)
        assert await has_message(rig)
        assert await has_message(rig, queue_id=1)
        assert not await has_message(rig, queue_id=0)
        await rig.consumer.take(1, queue_id=-1)
        assert not await has_message(rig)
        await rig.retried(RETRY_V1, 1)
        assert await has_message(rig)


@looped
async def test_a_queue_that_is_blocked_has_nothing_in_order(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        await rig.consumer.pop(order=True, max_msg_nums=1, attempt_id="a")
        assert not await has_message(rig, order=True)
        assert await has_message(rig, order=True, attempt_id="a")


@looped
async def test_a_notification_waits_for_its_time_and_no_longer(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(composition, "MAX_POLLING", 1)
    async with rigged(tmp_path) as rig, another(rig) as sender:
        first = rig.consumer.client.send(notifying(poll_time=60_000))
        await until(lambda: len(rig.pop.polling) == 1)
        full = await rig.consumer.client.ask(notifying(poll_time=60_000))
        assert full.read(NotificationReply) == NotificationReply(
            has_msg=False, polling_full=True
        )
        await sender.send(1)
        assert (await first).read(NotificationReply) == NotificationReply(has_msg=True)
        await rig.consumer.take(1)
        late = await rig.consumer.client.ask(notifying(poll_time=50))
        assert not late.read(NotificationReply).has_msg


@looped
async def test_who_waits_is_counted(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        header = rig.consumer.header
        for queue_id in (0, -1, -1):
            rig.consumer.client.send(header(queue_id=queue_id, poll_time=60_000))
        await until(lambda: len(rig.pop.polling) == 3)
        for queue_id, count in ((0, 1), (-1, 2), (-7, 2)):
            asked = PollingInfo(consumer_group=GROUP, topic=TOPIC, queue_id=queue_id)
            answer = await rig.consumer.client.ask(asked)
            assert answer.read(PollingInfoReply).polling_num == count
