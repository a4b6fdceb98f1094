"""Popping as a whole: what outlives a restart, a kill, and the loss of its store."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.pop.order import UNUSED_MS
from ropeway.gateway.wire.codes import ResponseCode
from tests.copies import killed_copy
from tests.gateway.holding import Holding, have_cold
from tests.gateway.pop.rig import (
    GROUP,
    INVISIBLE_MS,
    RETRY_V1,
    TOPIC,
    Clock,
    Consumer,
    Popped,
    another,
    popped,
    rigged,
)
from tests.remoting import connect, looped, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.pop.rig import Rig


async def pop_all(rig: Rig) -> list[bytes]:
    """Pop and acknowledge all that comes within the time of what is in hand, twice."""
    seen: list[bytes] = []
    for _ in range(3):
        found = await rig.consumer.pop(poll_time=100)
        seen += found.bodies
        for one in found.messages:
            retry = int("POP_CK" in one.properties)
            assert await rig.consumer.ack(found, one.queue_offset, retry=retry) == 0
        await rig.pass_time_until_done(INVISIBLE_MS + 100)
    return seen


async def some_in_hand(rig: Rig) -> tuple[Popped, Popped]:
    """Twelve messages: 0 to 3 are old, 4 to 7 young, 1 and 5 done, the rest waits."""
    await rig.consumer.send(12)
    old = await rig.consumer.take(4)
    await rig.to_ledger()
    assert await rig.consumer.ack(old, 1) == 0
    young = await rig.consumer.take(4)
    assert await rig.consumer.ack(young, 5) == 0
    rig.pass_time(0)
    await until(lambda: rig.committed() == 4)
    await until(lambda: not rig.pop.ledger.is_writing())
    await rig.app.node.offsets.flush()
    return old, young


def dead(rig: Rig) -> None:
    """Let a node end as by a kill: it writes nothing down."""
    rig.pop.give_up = no_farewell.__get__(rig.pop)


async def no_farewell(pop) -> None:
    running, pop._running = pop._running, []
    for task in running:
        task.cancel()
    pop.polling.release_all()
    await pop.ledger.close()


@looped
async def test_receipts_outlive_a_restart_in_order(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        old, young = await some_in_hand(rig)
    async with rigged(tmp_path, clock) as rig:
        assert rig.in_hand() == (0, 6)
        assert await rig.consumer.ack(old, 0) == 0
        assert await rig.consumer.ack(young, 4) == 0
        assert await rig.consumer.ack(young, 5) == ResponseCode.NO_MESSAGE
        found = await rig.consumer.take(4)
        assert found.offsets == [8, 9, 10, 11]
        for offset in found.offsets:
            assert await rig.consumer.ack(found, offset) == 0
        rig.pass_time(INVISIBLE_MS)
        assert sorted(await pop_all(rig)) == [b"2", b"3", b"6", b"7"]


@pytest.mark.rule(
    "pop.md",
    "A message that was handed out and is not done is at or above",
)
@looped
@pytest.mark.parametrize("store", ["kept", "lost", "damaged", "old"])
async def test_nothing_is_lost_by_a_kill_and_what_was_young_comes_again(
    tmp_path: Path, store: str
):
    clock = Clock()
    directory = tmp_path / "pop"
    async with rigged(tmp_path, clock) as rig:
        if store == "old":
            await rig.consumer.send(1)
            first = await rig.consumer.take(1)
            await rig.to_ledger()
            await until(lambda: not rig.pop.ledger.is_writing())
            killed_copy(directory, tmp_path / "before")
            assert await rig.consumer.ack(first, 0) == 0
            await rig.app.node.topics.delete(TOPIC)
            await rig.app.node.topics.ensure_derived(TOPIC, 1)
        old, _ = await some_in_hand(rig)
        dead(rig)
    if store in ("lost", "old"):
        shutil.rmtree(directory)
    if store == "damaged":
        for file in directory.glob("MANIFEST*"):
            file.write_bytes(b"x")
    elif store == "old":
        (tmp_path / "before").rename(directory)
        (directory / "LOCK").unlink(missing_ok=True)
    async with rigged(tmp_path, clock) as rig:
        # The old ones are in the ledger, and their receipts count.
        assert rig.in_hand() == (0, 3)
        assert await rig.consumer.ack(old, 0) == 0
        found = await rig.consumer.take(8)
        assert found.offsets == list(range(4, 12))
        for offset in found.offsets:
            assert await rig.consumer.ack(found, offset) == 0
        rig.pass_time(INVISIBLE_MS)
        assert sorted(await pop_all(rig)) == [b"2", b"3"]


@looped
async def test_the_order_of_a_queue_outlives_a_restart(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.consumer.send(3)
        found = await rig.consumer.pop(order=True, max_msg_nums=2)
        assert await rig.consumer.ack(found, 0) == 0
    async with rigged(tmp_path, clock) as rig:
        waiting = rig.consumer.client.send(
            rig.consumer.header(order=True, poll_time=60_000)
        )
        await until(lambda: len(rig.pop.polling) == 1)
        assert await rig.consumer.ack(found, 1) == ResponseCode.NO_MESSAGE
        rig.pass_time(INVISIBLE_MS - 1)
        assert not waiting.done()
        rig.pass_time(1)
        again = popped(await waiting)
        assert again.offsets == [1, 2]
        # The first of them came before.
        assert again.reply.order_count_info == "0 qo0%1 1;0 0 0"


@looped
async def test_who_gives_up_keeps_nothing_in_mind(tmp_path: Path):
    async with rigged(tmp_path, queues=2) as rig:
        await rig.consumer.send(1)
        await rig.consumer.send(1, queue_id=1)
        await rig.consumer.pop(order=True)
        await rig.consumer.pop(queue_id=1)
        assert (len(rig.pop.book), rig.pop.in_flight.buffered) == (1, 1)
        await rig.pop.give_up()
        assert (len(rig.pop.book), rig.pop.in_flight.buffered) == (0, 0)


@looped
@pytest.mark.parametrize("gone", [{"group": "others"}, {"topic": "others"}])
async def test_what_is_gone_takes_nothing_of_others_with_it(tmp_path: Path, gone):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        found = await rig.consumer.take(1)
        rig.pop.forget(**gone)
        assert rig.in_hand() == (1, 0)
        assert await rig.consumer.ack(found, 0) == 0


@looped
async def test_a_turn_at_which_nothing_is_due_asks_the_store_nothing(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.pass_time_until_done(0)
        rig.pass_time(0)
        assert rig.pop.is_idle()


def slow_disk(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[object], asyncio.Event]:
    """Have reads need a disk that waits; those of the topic, and what lets them go."""
    (partition,) = rig.app.node.topics.get(TOPIC).partitions
    kind, go_on = type(partition), asyncio.Event()
    read, reads = kind.read, []

    async def slow(self, *args):
        if self is partition:
            reads.append(args)
            await go_on.wait()
        return await read(self, *args)

    have_cold(monkeypatch, kind)
    monkeypatch.setattr(kind, "read", slow)
    return reads, go_on


@looped
async def test_what_was_read_while_its_group_was_moved_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        reads, go_on = slow_disk(rig, monkeypatch)
        first = rig.consumer.client.send(rig.consumer.header(poll_time=60_000))
        await until(lambda: reads)
        rig.pop.in_flight.get((GROUP, TOPIC, 0)).next_offset = 1
        go_on.set()
        assert popped(await first).offsets == [1]


@looped
async def test_a_pop_waits_while_another_reads_its_queue_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig, another(rig) as other:
        await rig.consumer.send(2)
        reads, go_on = slow_disk(rig, monkeypatch)
        header = rig.consumer.header(max_msg_nums=1, poll_time=60_000)
        first = rig.consumer.client.send(header)
        await until(lambda: reads)
        second = other.client.send(header)
        await until(lambda: len(rig.pop.polling) == 1)
        assert len(reads) == 1
        go_on.set()
        seen = popped(await first).offsets + popped(await second).offsets
        assert sorted(seen) == [0, 1]


@looped
async def test_turns_tear_out_pages_that_nobody_uses(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        found = await rig.consumer.pop(order=True)
        assert await rig.consumer.ack(found, 0) == 0
        rig.pass_time(UNUSED_MS)
        assert len(rig.pop.book) == 1
        rig.pass_time(UNUSED_MS)
        assert len(rig.pop.book) == 0


@looped
async def test_what_ended_in_order_before_a_restart_blocks_nothing(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.consumer.send(3)
        found = await rig.consumer.pop(order=True, max_msg_nums=2)
        for offset in found.offsets:
            assert await rig.consumer.ack(found, offset) == 0
    async with rigged(tmp_path, clock) as rig:
        assert (await rig.consumer.pop(order=True)).offsets == [2]


@looped
async def test_what_is_kept_longer_in_order_blocks_longer_after_a_restart(
    tmp_path: Path,
):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.consumer.send(2)
        found = await rig.consumer.pop(order=True)
        longer_ms = 2 * INVISIBLE_MS
        answer = await rig.consumer.change(found.receipt(0), 0, longer_ms)
        assert answer.code == 0
    async with rigged(tmp_path, clock) as rig:
        rig.pass_time(longer_ms - 1)
        assert (await rig.consumer.pop(order=True)).offsets == []
        rig.pass_time(1)
        assert (await rig.consumer.pop(order=True)).offsets == [0, 1]


@looped
async def test_the_topic_of_pops_is_opened_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As a log needs it that opens queues when they are used."""
    async with rigged(tmp_path) as rig:
        await some_in_hand(rig)
        kind = type(rig.app.node.log)
    ready, opened = kind.ready, []

    async def noted(log, topic: str, *numbers) -> None:
        opened.append(topic)
        await ready(log, topic, *numbers)

    monkeypatch.setattr(kind, "ready", noted)
    async with rigged(tmp_path):
        assert names.POP_TOPIC in opened


@looped
async def test_a_store_that_is_lost_while_it_runs_is_made_again(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        old, _ = await some_in_hand(rig)
        # As if RocksDB had found a damaged file.
        rig.pop.ledger._journal._store._index._db.close()
        async with connect(rig.app.server.listeners[0]) as client:
            codes = [await Consumer(client).ack(old, offset) for offset in (0, 2)]
        assert set(codes) <= {0, ResponseCode.SERVICE_NOT_AVAILABLE}
        await until(
            lambda: not rig.pop.ledger.lost.is_set() and rig.pop.ledger.is_open()
        )
        for offset, code in zip((0, 2), codes, strict=True):
            wanted = {0, ResponseCode.NO_MESSAGE} if code else {ResponseCode.NO_MESSAGE}
            assert await rig.consumer.ack(old, offset) in wanted
        assert await rig.consumer.ack(old, 3) == 0
        await rig.until_empty()


@looped
async def test_what_is_acknowledged_young_never_reaches_the_log(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(20)
        for _ in range(5):
            found = await rig.consumer.take(4)
            for offset in found.offsets:
                assert await rig.consumer.ack(found, offset) == 0
        await rig.pass_time_until_done(INVISIBLE_MS)
        assert rig.app.node.topics.get(names.POP_TOPIC) is None
        assert rig.app.node.topics.get(RETRY_V1) is None


@looped
async def test_a_group_that_is_deleted_leaves_nothing(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await some_in_hand(rig)
        rig.app.node.offsets.forget(group="readers")
        rig.pop.forget(group="readers")
        assert rig.in_hand() == (0, 0)
        found = await rig.consumer.take(12)
        assert found.offsets == list(range(12))


@looped
async def test_an_old_ack_while_a_batch_is_being_written_down_counts(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(4)
        found = await rig.consumer.take(4)
        rig.pass_time(10_100)
        # The log has it in a moment; the acknowledgements are here before.
        assert [await rig.consumer.ack(found, offset) for offset in (0, 3)] == [0, 0]
        await until(lambda: rig.pop.is_idle() and not rig.pop.ledger.is_writing())
        assert sum(rig.in_hand()) == 2
        rig.pass_time(INVISIBLE_MS)
        assert sorted(await pop_all(rig)) == [b"1", b"2"]


@looped
@pytest.mark.parametrize("in_order", [False, True])
async def test_a_topic_that_is_made_anew_is_popped_from_its_first_message(
    tmp_path: Path, in_order: bool
):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(4)
        await rig.consumer.take(4, order=in_order)
        await rig.app.node.topics.delete(TOPIC)
        await rig.app.node.topics.ensure_derived(TOPIC, 1)
        await rig.consumer.send(3)
        found = await rig.consumer.take(3, order=in_order)
        assert found.offsets == [0, 1, 2]


@looped
async def test_what_is_being_stored_again_is_waited_for_at_an_orderly_stop(
    tmp_path: Path,
):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.retried(RETRY_V1, 0)
        served = rig.app.node.topics.get(RETRY_V1)
        true = served.partitions[0]
        holding = Holding(true)
        served.partitions[0] = holding
        await rig.consumer.send(1)
        await rig.consumer.take(1)
        rig.pass_time(INVISIBLE_MS + 100)
        await until(lambda: holding.held)

        giving_up = asyncio.ensure_future(rig.pop.give_up())
        await asyncio.wait({giving_up}, timeout=0.1)
        assert not giving_up.done()
        served.partitions[0] = true
        holding.let_go()
        await giving_up
        assert true.end == 1
    async with rigged(tmp_path, clock) as rig:
        assert (await rig.consumer.take(1)).bodies == [b"0"]
        assert not (await rig.consumer.pop()).messages
