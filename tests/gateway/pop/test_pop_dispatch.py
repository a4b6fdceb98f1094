"""What a pop gets: from where, how much, and when nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.group_admin import ResetOffset
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.gateway.wire.commands.pop import PeekMessage
from ropeway.storage.api import MAX_LOOKED_BYTES, LogDamagedError, NotReadyError
from tests.gateway.holding import have_cold
from tests.gateway.pop.rig import (
    GROUP,
    RETRY_V1,
    RETRY_V2,
    TOPIC,
    Consumer,
    another,
    popped,
    rigged,
)
from tests.remoting import looped, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.api import Partition


@looped
async def test_a_pop_says_how_much_is_left(tmp_path: Path):
    """Pending = 100 - 20 = 80; a full batch leaves what other queues have."""
    async with rigged(tmp_path, queues=2) as rig:
        await rig.consumer.send(100)
        found = await rig.consumer.take(20)
        assert found.reply.rest_num == 80
        assert found.reply.start_offset_info == "0 0 0"
        assert found.reply.msg_offset_info == f"0 0 {','.join(map(str, range(20)))}"
        await rig.consumer.send(100, queue_id=1)
        found = await rig.consumer.take(20, queue_id=1)
        assert found.reply.rest_num == 80
        found = await rig.consumer.take(32, queue_id=-1)
        assert found.reply.rest_num == 160 - 32


@looped
async def test_all_queues_are_popped_in_turn_and_each_message_once(tmp_path: Path):
    async with rigged(tmp_path, queues=4) as rig:
        for queue_id in range(4):
            await rig.consumer.send(6, queue_id=queue_id)
        first, seen = [], []
        for _ in range(6):
            found = await rig.consumer.take(4, queue_id=-1)
            first.append(found.messages[0].queue_id)
            seen += [(one.queue_id, one.queue_offset) for one in found.messages]
        assert set(first) == set(range(4))
        assert sorted(seen) == [
            (queue, offset) for queue in range(4) for offset in range(6)
        ]
        empty = await rig.consumer.pop(queue_id=-1)
        assert empty.frame.code == ResponseCode.POLLING_TIMEOUT
        assert empty.frame.remark == "NO_MESSAGE_IN_QUEUE"
        assert empty.reply.rest_num == 0


class Shut:
    """A partition that is not open when it is first asked, and is then."""

    def __init__(self, true: Partition) -> None:
        self._true = true
        self._is_shut = True

    def __getattr__(self, name: str) -> object:
        if self._is_shut:
            self._is_shut = False
            raise NotReadyError(TOPIC, self._true.number)
        return getattr(self._true, name)


@looped
@pytest.mark.parametrize("shut", [0, 1, 2])
async def test_what_was_taken_is_given_where_another_queue_is_not_open(
    tmp_path: Path, shut: int
):
    async with rigged(tmp_path, queues=3) as rig:
        for queue_id in range(3):
            await rig.consumer.send(2, queue_id=queue_id)
        partitions = rig.app.node.topics.get(TOPIC).partitions
        partitions[shut] = Shut(partitions[shut])
        seen = []
        while len(seen) < 6:
            found = await rig.consumer.pop(max_msg_nums=8, queue_id=-1)
            seen += [(one.queue_id, one.queue_offset) for one in found.messages]
        assert sorted(seen) == [(queue, at) for queue in range(3) for at in range(2)]


@looped
async def test_a_pop_of_any_queue_has_both_kinds_of_retries_too(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig:
        for topic in (RETRY_V1, RETRY_V2):
            await rig.retried(topic, 2)
        for queue_id in range(2):
            await rig.consumer.send(2, queue_id=queue_id)
        found = await rig.consumer.take(8, queue_id=-1)
        assert found.reply.start_offset_info is not None
        assert sorted(found.reply.start_offset_info.split(";")) == [
            "0 0 0",
            "0 1 0",
            "1 0 0",
            "2 0 0",
        ]
        # All seem to be of the topic that was asked for.
        assert {one.topic for one in found.messages} == {TOPIC}
        ours = [one for one in found.messages if "POP_CK" in one.properties]
        assert len(ours) == 4
        for kind in (1, 2):
            for offset in (0, 1):
                text = found.receipt(offset, retry=kind)
                assert sum(text in one.properties for one in ours) == 1


@looped
async def test_retries_come_first_in_every_fifth_pop_and_last_in_others(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.retried(RETRY_V1, 4)
        await rig.consumer.send(10)
        kinds = []
        for _ in range(14):
            found = await rig.consumer.take(1)
            assert found.reply.start_offset_info is not None
            kinds.append(found.reply.start_offset_info[0])
        assert kinds[0] == kinds[5] == kinds[10] == "1"
        assert kinds.count("1") == 4


@looped
async def test_a_queue_stops_at_its_limit_until_something_is_done(tmp_path: Path):
    async with rigged(tmp_path, queues=2, in_flight=10) as rig:
        await rig.consumer.send(50)
        await rig.consumer.send(1, queue_id=1)
        first = await rig.consumer.take(5)
        await rig.consumer.take(5)
        stopped = await rig.consumer.pop()
        assert stopped.frame.code == ResponseCode.POLLING_TIMEOUT
        assert stopped.reply.rest_num == 0
        # Other queues, and other groups, go on.
        await rig.consumer.take(1, queue_id=-1)
        await Consumer(rig.consumer.client, "others").take(5)
        waiting = rig.consumer.client.send(rig.consumer.header(poll_time=60_000))
        await until(lambda: len(rig.pop.polling) == 1)
        async with another(rig) as other:
            assert await other.ack(first, 0) == 0
        assert popped(await waiting).offsets[0] == 10


@looped
@pytest.mark.parametrize("old", [False, True], ids=["in memory", "in the ledger"])
async def test_room_in_a_retry_topic_wakes_who_waits_at_any_queue(tmp_path: Path, old):
    async with rigged(tmp_path, queues=3, in_flight=2) as rig:
        await rig.retried(RETRY_V1, 3)
        first = await rig.consumer.take(2, queue_id=1)
        if old:
            await rig.to_ledger()
        waiting = rig.consumer.client.send(
            rig.consumer.header(queue_id=2, poll_time=60_000)
        )
        await until(lambda: len(rig.pop.polling) == 1)
        async with another(rig) as other:
            assert await other.ack(first, 0, retry=1) == 0
        assert popped(await waiting).offsets == [2]


@looped
async def test_offsets_that_are_not_there_are_corrected(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(25)
        commit = UpdateConsumerOffset(
            consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=1000
        )
        await rig.consumer.pop(queue_id=0, max_msg_nums=1, init_mode=1)
        await rig.consumer.client.ask(commit)
        rig.pop.in_flight.forget(group=GROUP)
        empty = await rig.consumer.pop()
        assert empty.frame.code == ResponseCode.POLLING_TIMEOUT
        await rig.consumer.send(1)
        assert (await rig.consumer.pop()).offsets == [25]


@looped
@pytest.mark.parametrize(("init_mode", "offsets"), [(0, [2, 3, 4]), (1, [4])])
async def test_a_new_group_begins_where_it_wants(
    tmp_path: Path, monkeypatch, init_mode, offsets
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(5)
        (partition,) = rig.app.node.topics.get(TOPIC).partitions
        other = Consumer(rig.consumer.client, "others")
        # While the first message is there, nobody can want to miss what came since.
        assert (await other.pop(init_mode=init_mode)).offsets == [0, 1, 2, 3, 4]
        monkeypatch.setattr(type(partition), "first", 2)
        assert (await rig.consumer.pop(init_mode=init_mode)).offsets == offsets


@looped
async def test_only_what_is_wanted_is_given_and_the_rest_passed_over(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        for tag in ("a", "b", "a", "c", "b"):
            await rig.consumer.send(1, pairs={"TAGS": tag, "price": str(ord(tag))})
        found = await rig.consumer.take(2, exp="b", exp_type="TAG")
        assert found.offsets == [1, 4]
        assert found.reply.start_offset_info == "0 0 0"
        assert found.reply.msg_offset_info == "0 0 1,4"
        for offset in (4, 1):
            assert await rig.consumer.ack(found, offset) == 0
        await until(lambda: rig.committed() == 5)
        other = Consumer(rig.consumer.client, "others")
        sql = await other.take(1, exp="price = 99", exp_type="SQL92")
        assert sql.offsets == [3]
        none = await other.pop(exp="z")
        assert none.frame.code == ResponseCode.POLLING_TIMEOUT
        refused = await other.client.ask(other.header(exp="price =", exp_type="SQL92"))
        assert refused.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


@looped
async def test_a_reset_forgets_what_is_in_hand_and_goes_on_there(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(10)
        old = await rig.consumer.take(3)
        await rig.to_ledger()
        await rig.consumer.take(3)
        assert rig.in_hand() == (3, 3)
        reset = ResetOffset(group=GROUP, topic=TOPIC, timestamp=0, is_force=True)
        assert (await rig.consumer.client.ask(reset)).code == 0
        found = await rig.consumer.take(8)
        assert found.offsets == list(range(8))
        assert await rig.consumer.ack(old, 0) == ResponseCode.NO_MESSAGE
        assert await rig.consumer.ack(found, 0) == 0
        await until(lambda: rig.committed() == 1)
        # What was in the ledger does not come back either.
        await until(lambda: not rig.pop.ledger.is_writing())
        rig.pass_time(1000)
        assert rig.app.node.topics.get(RETRY_V1) is None


@looped
async def test_groups_do_not_see_each_other(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        ours = await rig.consumer.take(2)
        other = Consumer(rig.consumer.client, "others")
        theirs = await other.take(2)
        assert await other.ack(ours, 0) in (0, ResponseCode.NO_MESSAGE)
        assert rig.in_hand() == (2, 0)
        assert await rig.consumer.ack(ours, 0) == 0
        assert theirs.offsets == ours.offsets


@looped
async def test_pops_at_the_same_time_never_get_the_same_message(tmp_path: Path):
    async with rigged(tmp_path, queues=3) as rig:
        for queue_id in range(3):
            await rig.consumer.send(40, queue_id=queue_id)
        asked = [
            rig.consumer.client.send(
                rig.consumer.header(queue_id=-1, max_msg_nums=7, poll_time=50)
            )
            for _ in range(40)
        ]
        seen = [
            (one.queue_id, one.queue_offset)
            for answer in await asyncio.gather(*asked)
            for one in popped(answer).messages
        ]
        assert len(seen) == len(set(seen)) == 120


@looped
async def test_pops_that_read_from_the_disk_leave_a_queue_to_each_other(
    tmp_path: Path, monkeypatch
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(30)
        await rig.app.node.log.flush()
        (partition,) = rig.app.node.topics.get(TOPIC).partitions
        have_cold(monkeypatch, type(partition))
        header = rig.consumer.header(max_msg_nums=5, poll_time=60_000)
        asked = [rig.consumer.client.send(header) for _ in range(6)]
        seen = [
            offset
            for answer in await asyncio.gather(*asked)
            for offset in popped(answer).offsets
        ]
        assert sorted(seen) == list(range(30))


@looped
async def test_a_fault_of_the_disk_takes_nothing(tmp_path: Path, monkeypatch):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        (partition,) = rig.app.node.topics.get(TOPIC).partitions

        async def damaged(*_):
            raise LogDamagedError("file 1, place 2")

        with monkeypatch.context() as patch:
            have_cold(patch, type(partition))
            patch.setattr(type(partition), "read", damaged)
            refused = await rig.consumer.client.ask(rig.consumer.header())
            assert refused.code == ResponseCode.SYSTEM_ERROR
        assert (await rig.consumer.take(3)).offsets == [0, 1, 2]


@looped
@pytest.mark.parametrize("cold", [False, True], ids=["from memory", "from the disk"])
async def test_a_pop_gets_no_more_than_it_asked_for_of_all_queues_together(
    tmp_path: Path, monkeypatch, cold
):
    async with rigged(tmp_path, queues=3) as rig:
        for queue_id in range(3):
            await rig.consumer.send(3, queue_id=queue_id)
        if cold:
            await rig.app.node.log.flush()
            (partition, *_) = rig.app.node.topics.get(TOPIC).partitions
            have_cold(monkeypatch, type(partition))
        first = await rig.consumer.take(5, queue_id=-1)
        assert first.reply.rest_num == 4
        second = await rig.consumer.take(4, queue_id=-1)
        places = {
            (one.queue_id, one.queue_offset)
            for one in [*first.messages, *second.messages]
        }
        assert len(places) == 9


@looped
async def test_a_peek_shows_no_more_than_it_asked_for_of_all_queues_together(
    tmp_path: Path,
):
    async with rigged(tmp_path, queues=3) as rig:
        for queue_id in range(3):
            await rig.consumer.send(3, queue_id=queue_id)
        for count in (1, 3, 5, 9):
            header = PeekMessage(
                consumer_group=GROUP, topic=TOPIC, queue_id=-1, max_msg_nums=count
            )
            answer = popped(await rig.consumer.client.ask(header))
            assert len(answer.messages) == count
            assert answer.reply.rest_num == 9


@looped
async def test_a_filter_that_keeps_much_out_does_not_make_a_pop_wait(tmp_path: Path):
    """One look ends after MAX_LOOKED_BYTES; the pop goes on behind it by itself."""
    async with rigged(tmp_path) as rig:
        client = rig.consumer.client
        body = bytes(1 << 20)
        for _ in range(2 * MAX_LOOKED_BYTES // len(body) + 1):
            assert (await client.ask(sending(TOPIC), body)).code == 0
        dear = sending(TOPIC, pairs={"price": "9"})
        assert (await client.ask(dear, b"wanted")).code == 0
        header = rig.consumer.header(
            exp="price > 5", exp_type="SQL92", poll_time=60_000
        )
        assert popped(await client.ask(header)).bodies == [b"wanted"]


@looped
async def test_what_is_not_wanted_in_order_is_passed_over_for_good(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        for tag in ("a", "a", "b"):
            await rig.consumer.send(1, pairs={"TAGS": tag})
        none = await rig.consumer.pop(exp="z", order=True)
        assert none.frame.code == ResponseCode.POLLING_TIMEOUT
        assert rig.committed() == 3
        await rig.consumer.send(1, pairs={"TAGS": "z"})
        assert (await rig.consumer.take(1, order=True)).offsets == [3]


@looped
async def test_a_reset_of_one_queue_leaves_the_others_as_they_are(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig:
        for queue_id in (0, 1):
            await rig.consumer.send(4, queue_id=queue_id)
            await rig.consumer.take(2, queue_id=queue_id)
        reset = ResetOffset(
            group=GROUP, topic=TOPIC, queue_id=0, timestamp=0, offset=0, is_force=True
        )
        assert (await rig.consumer.client.ask(reset)).code == 0
        assert (await rig.consumer.pop(queue_id=1)).offsets == [2, 3]
        assert (await rig.consumer.pop(queue_id=0)).offsets == [0, 1, 2, 3]
