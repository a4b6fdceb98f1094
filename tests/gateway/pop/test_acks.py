"""Receipts: which count, which do not, and what changes by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import InvisibleReply
from tests.gateway.pop.rig import (
    GROUP,
    INVISIBLE_MS,
    RETRY_V1,
    TOPIC,
    Consumer,
    another,
    bits,
    of_batch,
    popped,
    renewed,
    rigged,
)
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.pop.rig import Rig

IN_ORDER = {"order": True}


@looped
@pytest.mark.parametrize("old", [False, True], ids=["in memory", "in the ledger"])
async def test_each_message_is_acknowledged_once(tmp_path: Path, old):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(4)
        found = await rig.consumer.take(4)
        if old:
            await rig.to_ledger()
            assert rig.in_hand() == (0, 4)
        for offset in (2, 0):
            assert await rig.consumer.ack(found, offset) == 0
            assert await rig.consumer.ack(found, offset) == ResponseCode.NO_MESSAGE
        assert sum(rig.in_hand()) == 2
        await until(lambda: rig.committed() == (4 if old else 1))
        for offset in (1, 3):
            assert await rig.consumer.ack(found, offset) == 0
        assert rig.in_hand() == (0, 0)
        await until(lambda: rig.committed() == 4)
        rig.pass_time(2 * INVISIBLE_MS)
        assert rig.app.node.topics.get(RETRY_V1) is None


@looped
@pytest.mark.parametrize("old", [False, True], ids=["in memory", "in the ledger"])
async def test_receipts_that_were_never_given_change_nothing(tmp_path: Path, old):
    async with rigged(tmp_path, queues=2) as rig:
        await rig.consumer.send(2)
        found = await rig.consumer.take(2)
        if old:
            await rig.to_ledger()
        good = found.receipt(0)
        start, pop_ms, invisible_ms, *rest = good.split(" ")
        tail = " ".join(rest)
        not_out = [
            f"{start} {int(pop_ms) - 1} {invisible_ms} {tail}",
            f"{start} {pop_ms} {int(invisible_ms) + 1} {tail}",
            f"{int(start) + 1} {pop_ms} {invisible_ms} {tail}",
            f"-1 {pop_ms} {invisible_ms} {tail}",
            f"{1 << 70} {1 << 70} {1 << 70} {tail}",
            f"{start} {pop_ms} {invisible_ms} 999 0 broker-0 0 0",
        ]
        for text in not_out:
            assert await rig.consumer.ack_by(text, 0) == ResponseCode.NO_MESSAGE, text
            changed = await rig.consumer.change(text, 0, 1000)
            assert changed.code == ResponseCode.NO_MESSAGE
        for offset in (2, -1, 1 << 62):
            assert await rig.consumer.ack_by(good, offset) == ResponseCode.NO_MESSAGE
        foreign = [
            good.replace("broker-0", "broker-1"),
            f"{start} {pop_ms} {invisible_ms} 0 1 broker-0 0 0",
            f"{start} {pop_ms} {invisible_ms} 0 0 broker-0 1 0",
            *(good[:end] for end in range(0, good.index(" broker-0 0") + 9, 7)),
            "nothing",
        ]
        for text in foreign:
            code = await rig.consumer.ack_by(text, 0)
            assert code == ResponseCode.INVALID_PARAMETER, text
            changed = await rig.consumer.change(text, 0, 1000)
            assert changed.code == ResponseCode.INVALID_PARAMETER
        other = Consumer(rig.consumer.client, "others")
        assert await other.ack_by(good, 0) == ResponseCode.NO_MESSAGE
        absent = await rig.consumer.ack_by(good, 0, topic="absent")
        assert absent == ResponseCode.TOPIC_NOT_EXIST
        for queue_id in (-1, 2, 1 << 30):
            code = await rig.consumer.ack_by(good, 0, queue_id)
            assert code == ResponseCode.MESSAGE_ILLEGAL
        assert sum(rig.in_hand()) == 2
        assert await rig.consumer.ack(found, 0) == 0
        assert await rig.consumer.ack(found, 1) == 0


@looped
async def test_an_old_receipt_does_not_meet_a_newer_hand_out(tmp_path: Path):
    """The original deletes by offset alone."""
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        old = await rig.consumer.take(1)
        rig.clock.now_ms += 5
        changed = await rig.consumer.change(old.receipt(0), 0, INVISIBLE_MS)
        assert await rig.consumer.ack(old, 0) == ResponseCode.NO_MESSAGE
        assert sum(rig.in_hand()) == 1
        new = renewed(old.receipt(0), changed)
        assert await rig.consumer.ack_by(new, 0) == 0
        assert sum(rig.in_hand()) == 0


@looped
async def test_a_time_that_is_changed_at_once_leaves_the_rest_as_it_was(tmp_path: Path):
    """In the same millisecond, the new receipt must not be that of the whole batch."""
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        found = await rig.consumer.take(3)
        changed = await rig.consumer.change(found.receipt(0), 0, INVISIBLE_MS)
        assert sum(rig.in_hand()) == 3
        for offset in (1, 2):
            assert await rig.consumer.ack(found, offset) == 0
        rig.pass_time(0)
        assert rig.committed() == 0
        new = renewed(found.receipt(0), changed)
        assert await rig.consumer.ack_by(new, 0) == 0
        rig.pass_time(0)
        assert rig.committed() == 3


@looped
@pytest.mark.parametrize("old", [False, True], ids=["in memory", "in the ledger"])
@pytest.mark.parametrize("invisible_ms", [0, 20_000, 3_600_000])
async def test_a_message_is_kept_for_as_long_as_was_said_last(
    tmp_path: Path, old, invisible_ms
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        found = await rig.consumer.take(3)
        if old:
            await rig.to_ledger()
        changed = await rig.consumer.change(found.receipt(1), 1, invisible_ms)
        reply = changed.read(InvisibleReply)
        assert (reply.pop_time, reply.invisible_time) == (rig.clock(), invisible_ms)
        assert sum(rig.in_hand()) == 3
        for offset in (0, 2):
            assert await rig.consumer.ack(found, offset) == 0
        if invisible_ms:
            rig.pass_time(invisible_ms - 1)
            await until(lambda: rig.pop.is_idle() and not rig.pop.ledger.is_writing())
            assert rig.app.node.topics.get(RETRY_V1) is None
        rig.pass_time(101)
        again = popped(
            await rig.consumer.client.ask(rig.consumer.header(poll_time=60_000))
        )
        assert again.bodies == [b"1"]
        assert again.messages[0].reconsume_times == 1
        text = renewed(found.receipt(1), changed)
        assert await rig.consumer.ack_by(text, 1) == ResponseCode.NO_MESSAGE
        await until(lambda: rig.committed() == 3)


@looped
@pytest.mark.parametrize("invisible_ms", [-1, -(1 << 62), 86_400_001, (1 << 63) - 1])
async def test_times_that_are_none_are_refused(tmp_path: Path, invisible_ms):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        refused = await rig.consumer.client.ask(
            rig.consumer.header(invisible_time=invisible_ms)
        )
        assert refused.code == ResponseCode.INVALID_PARAMETER
        assert "allowed: 1 to 86400000" in (refused.remark or "")
        found = await rig.consumer.take(1)
        changed = await rig.consumer.change(found.receipt(0), 0, invisible_ms)
        assert changed.code == ResponseCode.INVALID_PARAMETER
        assert await rig.consumer.ack(found, 0) == 0


@looped
@pytest.mark.parametrize("old", [False, True], ids=["in memory", "in the ledger"])
async def test_a_batch_takes_what_is_in_hand_and_passes_over_the_rest(
    tmp_path: Path, old
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(8)
        found = await rig.consumer.take(6)
        if old:
            await rig.to_ledger()
        batch = rig.consumer.batch
        assert await batch(of_batch(found, [0, 1, 3, 7])) == 0
        assert sum(rig.in_hand()) == 3
        stale = of_batch(found, [2], pop_ms=1)
        elsewhere = of_batch(found, [2], queue_id=9, topic="absent")
        assert await batch(stale, elsewhere, of_batch(found, [1])) == 0
        assert sum(rig.in_hand()) == 3
        assert await batch(of_batch(found, [2, 4, 5]), of_batch(found, [5])) == 0
        assert sum(rig.in_hand()) == 0
        await until(lambda: rig.committed() == 6)


@looped
async def test_batches_that_cannot_be_read_are_refused_whole(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        found = await rig.consumer.take(2)
        good = of_batch(found, [0])
        for bad in ({"bits": "?"}, {"retry": "3"}, {"retry": ""}, {"retry": "-1"}):
            code = await rig.consumer.batch(good, of_batch(found, [1], **bad))
            assert code == ResponseCode.INVALID_PARAMETER
        for body, code in (
            (b"", ResponseCode.INVALID_PARAMETER),
            (b"{", ResponseCode.INVALID_PARAMETER),
            (b"{}", ResponseCode.NO_MESSAGE),
            (b'{"acks":[]}', ResponseCode.NO_MESSAGE),
            (b'{"acks":[{}]}', ResponseCode.INVALID_PARAMETER),
        ):
            assert (await rig.consumer.client.ask(200151, body)).code == code
        assert rig.in_hand() == (2, 0)
        assert bits(1, 2) == "Bg=="


# In order.


async def in_order(rig: Rig, count: int, **changes):
    return await rig.consumer.pop(order=True, max_msg_nums=count, **changes)


@looped
async def test_a_blocked_queue_gives_nothing_and_counts_no_rest(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(9)
        first = await in_order(rig, 3)
        assert (first.offsets, first.reply.revive_qid) == ([0, 1, 2], 999)
        assert first.reply.rest_num == 6
        assert first.reply.order_count_info == "0 0 0"
        blocked = await in_order(rig, 3)
        assert blocked.frame.code == ResponseCode.POLLING_TIMEOUT
        assert blocked.reply.rest_num == 0
        assert blocked.reply.revive_qid == 999


@looped
@pytest.mark.parametrize(("count", "offsets"), [(2, [1, 2]), (3, [1, 2, 3])])
async def test_after_the_first_is_done_the_rest_comes_when_it_is_visible(
    tmp_path: Path, count, offsets
):
    """ABC out; ack A: then BC, or BCD."""
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(4)
        first = await in_order(rig, 3)
        assert await rig.consumer.ack(first, 0) == 0
        assert rig.committed() == 1
        assert (await in_order(rig, 3)).messages == []
        rig.pass_time(INVISIBLE_MS)
        assert (await in_order(rig, count)).offsets == offsets


@looped
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_while_the_first_is_not_done_all_comes_again(tmp_path: Path, count):
    """ABC out; ack BC: it blocks, and then A, AB or ABC come, as many as are asked."""
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        first = await in_order(rig, 3)
        for offset in (1, 2):
            assert await rig.consumer.ack(first, offset) == 0
        assert (await in_order(rig, count)).messages == []
        rig.pass_time(INVISIBLE_MS)
        again = await in_order(rig, count)
        assert again.offsets == list(range(count))
        parts = [f"0 qo0%{offset} 1" for offset in range(count)]
        assert again.reply.order_count_info == ";".join([*parts, "0 0 1"])
        assert await rig.consumer.ack(first, 0) == ResponseCode.NO_MESSAGE


@looped
async def test_the_least_count_of_a_queue_is_that_of_what_came_fewest_times(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        for count in (2, 3):
            await in_order(rig, count)
            rig.pass_time(INVISIBLE_MS)
        again = await in_order(rig, 3)
        assert again.reply.order_count_info == "0 qo0%0 2;0 qo0%1 2;0 qo0%2 1;0 0 1"


@looped
async def test_the_last_ack_in_order_wakes_who_waits(tmp_path: Path):
    async with rigged(tmp_path) as rig, another(rig) as other:
        await rig.consumer.send(3)
        first = await in_order(rig, 2)
        waiting = rig.consumer.client.send(
            rig.consumer.header(order=True, poll_time=60_000)
        )
        await until(lambda: len(rig.pop.polling) == 1)
        assert await other.ack(first, 0) == 0
        assert not waiting.done()
        assert await other.ack(first, 1) == 0
        assert popped(await waiting).offsets == [2]


@looped
async def test_a_queue_that_is_free_again_wakes_who_waits(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        await in_order(rig, 2)
        waiting = rig.consumer.client.send(
            rig.consumer.header(order=True, poll_time=60_000)
        )
        await until(lambda: len(rig.pop.polling) == 1)
        rig.pass_time(INVISIBLE_MS - 1)
        assert not waiting.done()
        rig.pass_time(1)
        assert popped(await waiting).offsets == [0, 1]


@looped
async def test_the_same_attempt_gets_the_same_again(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        first = await in_order(rig, 1, attempt_id="a")
        again = await in_order(rig, 1, attempt_id="a")
        assert first.offsets == again.offsets == [0]
        assert again.reply.order_count_info == "0 0 0"
        assert (await in_order(rig, 1, attempt_id="b")).messages == []
        assert await rig.consumer.ack(again, 0) == 0
        assert (await in_order(rig, 1, attempt_id="b")).offsets == [1]


@looped
async def test_a_time_in_order_counts_from_the_pop(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        first = await in_order(rig, 1)
        rig.clock.now_ms += 1000
        changed = await rig.consumer.change(first.receipt(0), 0, 5000)
        reply = changed.read(InvisibleReply)
        assert reply.pop_time == first.reply.pop_time
        assert (reply.invisible_time, reply.revive_qid) == (6000, 999)
        rig.clock.now_ms += 4999
        assert (await in_order(rig, 1)).messages == []
        rig.clock.now_ms += 1
        assert (await in_order(rig, 1)).offsets == [0]


@looped
async def test_queues_are_in_order_by_themselves(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig:
        for queue_id in range(2):
            await rig.consumer.send(2, queue_id=queue_id)
        first = await in_order(rig, 2, queue_id=-1)
        second = await in_order(rig, 2, queue_id=-1)
        assert {one.messages[0].queue_id for one in (first, second)} == {0, 1}
        assert (await in_order(rig, 2, queue_id=-1)).messages == []
        queue_id = first.messages[0].queue_id
        for offset in (0, 1):
            assert await rig.consumer.ack(first, offset, queue_id) == 0
        assert rig.app.node.offsets.get(GROUP, TOPIC, queue_id) == 2


@looped
async def test_a_batch_in_order_is_done_in_order(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        first = await in_order(rig, 3)
        assert await rig.consumer.batch(of_batch(first, [0, 2])) == 0
        assert rig.committed() == 1
        assert await rig.consumer.batch(of_batch(first, [1])) == 0
        assert rig.committed() == 3


@looped
async def test_progress_in_order_stands_still_while_its_own_queue_is_moved(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(4)
        first = await in_order(rig, 3)
        resets = rig.app.node.resets
        resets.put(GROUP, "others", {0: 7})
        assert await rig.consumer.ack(first, 0) == 0
        assert rig.committed() == 1
        resets.put(GROUP, TOPIC, {0: 0})
        assert await rig.consumer.ack(first, 1) == 0
        assert rig.committed() == 0
