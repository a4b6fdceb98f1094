"""The ledger: receipts of what is out for long, and what is due of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.pop.in_flight import Batch
from ropeway.gateway.pop.ledger import change_of
from ropeway.gateway.wire.receipt import Receipt
from ropeway.storage.api import LogUnavailableError
from tests.gateway.pop.rig import rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.pop.rig import Rig

PLACE = ("readers", "orders", 0)


async def put(rig: Rig, start: int, invisible_ms: int, count: int = 2) -> Receipt:
    """Put a batch into the ledger; what its receipts say."""
    offsets = range(start, start + count)
    batch = Batch(start, rig.clock(), invisible_ms, offsets, open=(1 << count) - 1)
    await rig.pop.ledger.put([change_of(PLACE, batch)])
    await until(lambda: not rig.pop.ledger.is_writing())
    return Receipt(start, rig.clock(), invisible_ms, 0, 0, "broker-0", 0)


@looped
async def test_a_message_is_closed_by_its_receipt_once(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        ledger = rig.pop.ledger
        given = await put(rig, 4, 60_000)
        assert not await ledger.close_message(PLACE, given, 6)
        assert not await ledger.close_message(PLACE, given._replace(start=5), 5)
        assert not await ledger.close_message(PLACE, given._replace(pop_ms=-1), 5)
        other = ("others", "orders", 0)
        assert not await ledger.close_message(other, given, 5)
        assert await ledger.close_message(PLACE, given, 5)
        assert not await ledger.close_message(PLACE, given, 5)
        assert await ledger.close_message(PLACE, given, 4)
        await rig.until_empty()


@looped
async def test_what_is_due_is_taken_once_and_in_order(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        ledger = rig.pop.ledger
        now_ms = rig.clock()
        for start, invisible_ms in ((0, 70_000), (2, 50_000), (4, 60_000)):
            await put(rig, start, invisible_ms)
        assert await ledger.take_due(now_ms + 49_999, 10) == []
        first = await ledger.take_due(now_ms + 65_000, 1)
        assert [one.start for one in first] == [2]
        second = await ledger.take_due(now_ms + 65_000, 10)
        assert [one.start for one in second] == [4]
        await ledger.settle([(one, 0, 0) for one in first])
        # One that stays out comes again later, with less in it.
        await ledger.settle([(second[0], 0b10, now_ms + 90_000)])
        await until(lambda: not ledger.is_writing())
        third = await ledger.take_due(now_ms + 95_000, 10)
        assert [(one.start, one.open, one.attempts) for one in third] == [
            (0, 0b11, 0),
            (4, 0b10, 1),
        ]
        await ledger.settle([(one, 0, 0) for one in third])
        await rig.until_empty()


@looped
async def test_a_receipt_is_too_late_once_its_batch_is_taken(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        given = await put(rig, 0, 60_000)
        (due,) = await rig.pop.ledger.take_due(rig.clock() + 60_000, 10)
        assert not await rig.pop.ledger.close_message(PLACE, given, 0)
        await rig.pop.ledger.settle([(due, 0b11, rig.clock() + 90_000)])
        assert not await rig.pop.ledger.close_message(PLACE, given, 0)


@looped
async def test_a_queue_is_dropped_alone(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        given = await put(rig, 0, 60_000)
        await rig.pop.ledger.drop(("readers", "orders", 1))
        assert await rig.pop.ledger.close_message(PLACE, given, 0)
        await rig.pop.ledger.drop(PLACE)
        await rig.until_empty()


@looped
async def test_what_is_put_behind_the_last_look_is_due_as_well(tmp_path: Path):
    """It was popped before that look, and came to the ledger after it."""
    async with rigged(tmp_path) as rig:
        ledger = rig.pop.ledger
        now_ms = rig.clock()
        assert await ledger.take_due(now_ms + 90_000, 10) == []
        await put(rig, 0, 60_000)
        await put(rig, 2, 70_000)
        assert ledger.look_ms <= now_ms + 60_000
        due = await ledger.take_due(now_ms + 90_001, 10)
        assert [one.start for one in due] == [0, 2]


@looped
async def test_what_came_of_a_batch_and_could_not_be_noted_is_noted_later(
    tmp_path: Path, monkeypatch
):
    """Seed 111 of the simulator: a full disk had it come of the batch twice."""
    async with rigged(tmp_path) as rig:
        ledger = rig.pop.ledger
        now_ms = rig.clock()
        given = await put(rig, 0, 60_000)
        due = await ledger.take_due(now_ms + 70_000, 10)

        async def refuse(_):
            raise LogUnavailableError("not now")

        with monkeypatch.context() as patch:
            patch.setattr(ledger._journal, "put", refuse)
            ledger.look_ms = now_ms + 500_000
            await ledger.settle([(one, 0b10, now_ms + 90_000) for one in due])
            assert ledger.look_ms == now_ms + 1000
            assert await ledger.take_due(now_ms + 95_000, 10) == []
            assert await ledger.take_of(PLACE) == []
            assert not await ledger.close_message(PLACE, given, 1)
        assert await ledger.take_due(now_ms + 95_000, 10) == []
        await until(lambda: not ledger.is_writing())
        (again,) = await ledger.take_due(now_ms + 95_000, 10)
        assert (again.start, again.open, again.attempts) == (0, 0b10, 1)
        await ledger.settle([(again, 0, 0)])
        await rig.until_empty()


@looped
async def test_who_looks_again_is_told_when_the_next_batch_is_due(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        ledger = rig.pop.ledger
        now_ms = rig.clock()
        await put(rig, 0, 60_000)
        await put(rig, 2, 80_000)
        (first,) = await ledger.take_due(now_ms + 60_000, 10)
        await ledger.settle([(first, 0, 0)])
        ledger.look_ms = now_ms + 500_000
        await ledger.plan()
        assert ledger.look_ms <= now_ms + 80_000


@looped
async def test_what_is_behind_a_page_of_due_batches_is_due_as_well(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        ledger = rig.pop.ledger
        now_ms = rig.clock()
        await put(rig, 0, 50_000)
        await put(rig, 2, 70_000)
        for attempts in range(2):
            (first,) = await ledger.take_due(now_ms + 80_000, 1)
            assert (first.start, first.attempts) == (0, attempts)
            await ledger.settle([(first, 0b11, now_ms + 60_000)])
            await until(lambda: not ledger.is_writing())
        (first,) = await ledger.take_due(now_ms + 80_000, 1)
        await ledger.settle([(first, 0, 0)])
        (second,) = await ledger.take_due(now_ms + 80_000, 1)
        assert (first.start, second.start) == (0, 2)
