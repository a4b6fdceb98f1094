"""The journal: changes that are in the log, whatever becomes of the store."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node import names
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.pop import store
from ropeway.gateway.pop.journal import Journal
from ropeway.gateway.pop.store import Store
from ropeway.gateway.wire import message
from ropeway.storage.api import LogBusyError, LogUnavailableError, NotReadyError
from tests.broker_contexts import broker_of
from tests.gateway.pop.rig import Clock
from tests.remoting import looped, running, until

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App

PLACE = ("readers", "orders", 0)


class Kept:
    """A journal, and what it has told."""

    def __init__(self, app: App, path: Path, clock: Clock) -> None:
        self.applied: list[bytes] = []
        self.counts: Counter | None = None
        self.journal = Journal(
            broker_of(app.node, clock),
            path / "journal",
            lambda changes: self.applied.extend(key for key, _ in changes),
        )

    async def open(self, *, anew: bool = False) -> None:
        def count(counts: Counter) -> None:
            self.counts = counts

        await self.journal.open(count, anew=anew)

    async def all(self) -> list[int]:
        """The starts of what is out, by the store."""
        found = await self.journal.run(Store.page, b"", 10_000)
        return sorted(store.entry_of(*one).start for one in found)


def change(start: int, clock: Clock, *, out: bool = True):
    key = store.key_of(PLACE, start, clock(), clock() + 60_000)
    return key, store.value_of(0, 1, (start,)) if out else b""


@asynccontextmanager
async def kept(path: Path, clock: Clock) -> AsyncIterator[tuple[App, Kept]]:
    async with running(path / "node") as (app, _):
        one = Kept(app, path, clock)
        await one.open()
        yield app, one
        await one.journal.close()


@looped
async def test_changes_of_one_turn_go_together_and_are_there_after_a_restart(
    tmp_path: Path,
):
    clock = Clock()
    async with kept(tmp_path, clock) as (app, one):
        assert one.counts == {}
        assert app.node.topics.get(names.POP_TOPIC) is None
        puts = [one.journal.put([change(start, clock)]) for start in range(5)]
        await asyncio.gather(*puts)
        (partition,) = app.node.topics.get(names.POP_TOPIC).partitions
        assert partition.end == 1
        await one.journal.put([change(2, clock, out=False)])
        await until(lambda: len(one.applied) == 6)
        await until(lambda: one.journal.status().lag_records == 0)
        assert await one.all() == [0, 1, 3, 4]
    async with kept(tmp_path, clock) as (_, one):
        assert one.counts == {PLACE: 4}
        assert await one.all() == [0, 1, 3, 4]


@looped
async def test_what_is_on_its_way_is_read_as_it_will_be(tmp_path: Path):
    clock = Clock()
    async with kept(tmp_path, clock) as (_, one):
        key, value = change(1, clock)
        putting = asyncio.ensure_future(one.journal.put([(key, value)]))
        await asyncio.sleep(0)
        assert await one.journal.get(key) == value
        await putting
        gone = asyncio.ensure_future(one.journal.put([(key, b"")]))
        await asyncio.sleep(0)
        assert await one.journal.get(key) == b""
        await gone
        absent, _ = change(2, clock)
        assert await one.journal.get(absent) == b""


@looped
@pytest.mark.parametrize("at_once", [True, False])
async def test_what_the_log_refuses_did_not_happen(
    tmp_path: Path, monkeypatch, at_once: bool
):
    clock = Clock()
    async with kept(tmp_path, clock) as (app, one):
        await one.journal.put([change(1, clock)])
        (partition,) = app.node.topics.get(names.POP_TOPIC).partitions

        def refuse(_partition, _records, _store_ms, done):
            error = LogBusyError("too much waits")
            if at_once:
                raise error
            asyncio.get_running_loop().call_soon(done, -1, error)

        with monkeypatch.context() as patch:
            patch.setattr(type(partition), "append", refuse)
            with pytest.raises(LogBusyError):
                await one.journal.put([change(1, clock, out=False)])
        await until(lambda: not one.journal.is_writing())
        assert await one.all() == [1]
        assert await one.journal.get(change(1, clock)[0]) != b""


@looped
async def test_a_partition_that_was_closed_is_opened_again(tmp_path: Path, monkeypatch):
    """Nobody else does: clients do not ask for it."""
    clock, opened = Clock(), []
    async with kept(tmp_path, clock) as (app, one):
        await one.journal.put([change(1, clock)])
        (partition,) = app.node.topics.get(names.POP_TOPIC).partitions

        def refuse(_partition, _records, _store_ms, _done):
            raise NotReadyError(names.POP_TOPIC)

        async def ready(_log, topic, _numbers=None):
            opened.append(topic)
            monkeypatch.undo()

        monkeypatch.setattr(type(partition), "append", refuse)
        monkeypatch.setattr(type(app.node.log), "ready", ready)
        with pytest.raises(NotReadyError):
            await one.journal.put([change(2, clock)])
        await until(lambda: opened == [names.POP_TOPIC])
        await one.journal.put([change(2, clock)])
        await until(lambda: len(one.applied) == 2)
        assert await one.all() == [1, 2]


@looped
async def test_a_record_that_came_by_another_way_is_read_from_the_log(tmp_path: Path):
    """As one whose outcome nobody knew when it was written."""
    clock = Clock()
    async with kept(tmp_path, clock) as (app, one):
        await one.journal.put([change(1, clock)])
        await until(lambda: not one.journal.is_writing())
        other = Kept(app, tmp_path / "other", clock)
        await other.open()
        assert other.counts == {PLACE: 1}
        await other.journal.put([change(2, clock)])
        await one.journal.put([change(3, clock)])
        await asyncio.wait_for(one.journal.lost.wait(), 120)
        await one.open()
        assert await one.all() == [1, 2, 3]
        await other.journal.close()


@looped
async def test_what_was_put_is_in_the_store_before_it_is_closed(tmp_path: Path):
    clock = Clock()
    async with kept(tmp_path, clock) as (_, one):
        one_change = change(1, clock)
        await one.journal.put([one_change])
        await one.journal.close()
        assert one.applied == [one_change[0]]
        assert not one.journal.lost.is_set()
        await one.open()


@looped
async def test_what_a_lost_store_has_not_taken_is_not_told_as_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock()

    def lose(*_: object) -> None:
        raise IndexLostError("damage that a test makes")

    async with kept(tmp_path, clock) as (_, one):
        one_change = change(1, clock)
        with monkeypatch.context() as patch:
            patch.setattr(Store, "apply", lose)
            await one.journal.put([one_change])
            await asyncio.wait_for(one.journal.lost.wait(), 60)
        assert one.applied == []
        # It is at hand all the same, until the store is made again.
        assert await one.journal.get(one_change[0]) == one_change[1]
        await one.open(anew=True)
        assert await one.all() == [1]


@looped
async def test_many_changes_are_several_records(tmp_path: Path):
    clock = Clock()
    async with kept(tmp_path, clock) as (app, one):
        await one.journal.put([change(start, clock) for start in range(9000)])
        (partition,) = app.node.topics.get(names.POP_TOPIC).partitions
        assert partition.end > 1
        await until(lambda: len(one.applied) == 9000)
        await one.open(anew=True)
        assert one.counts == {PLACE: 9000}


@looped
async def test_a_store_that_is_not_there_is_said(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("ropeway.gateway.pop.journal._CATCH_UP_S", 0.05)
    clock = Clock()
    async with kept(tmp_path, clock) as (_, one):
        key, _ = change(1, clock)
        await one.journal.close()
        with pytest.raises(LogUnavailableError, match="being read"):
            await one.journal.get(key)


MADE_AGAIN = "index does not fit the log: it is made again"


@looped
async def test_a_store_that_fits_its_log_is_kept_and_another_is_made_again(
    tmp_path: Path,
):
    clock = Clock()
    async with kept(tmp_path, clock) as (_, one):
        # Several records of one append: the last one is what the store goes by.
        await one.journal.put([change(start, clock) for start in range(9000)])
        await until(lambda: not one.journal.is_writing())
        with capture_logs() as logs:
            await one.open()
        assert not [line for line in logs if line["event"] == MADE_AGAIN]
        read_to, crc = await one.journal.run(Store.checkpoint)
        assert read_to > 1
        for wrong in ((read_to, crc ^ 1), (read_to + 1, crc), (0, crc), (1, crc)):
            stale = [change(9999, clock)]
            await one.journal.run(Store.apply, stale, wrong)
            with capture_logs() as logs:
                await one.open()
            assert [line for line in logs if line["event"] == MADE_AGAIN], wrong
            assert await one.all() == [*range(9000)]
            assert await one.journal.run(Store.checkpoint) == (read_to, crc)


@looped
async def test_records_know_their_own_places(tmp_path: Path):
    clock = Clock()
    async with kept(tmp_path, clock) as (app, one):
        await one.journal.put([change(0, clock)])
        putting = asyncio.ensure_future(
            one.journal.put([change(start, clock) for start in range(9000)])
        )
        await asyncio.sleep(0)
        assert one.journal.is_writing() is True
        await putting
        (partition,) = app.node.topics.get(names.POP_TOPIC).partitions
        places = []
        while len(places) < partition.end:
            chunk = await partition.read(len(places), 1, 1)
            places.append(message.decode(chunk.data[0]).queue_offset)
        assert places == [*range(partition.end)]
        assert len(places) > 2


@looped
async def test_what_is_put_while_the_store_is_closed_is_there_when_it_is_open(
    tmp_path: Path,
):
    clock = Clock()
    async with kept(tmp_path, clock) as (_, one):
        await one.journal.put([change(0, clock)])
        await until(lambda: not one.journal.is_writing())
        await one.journal.close()
        await one.journal.put([change(1, clock)])
        assert not one.journal.is_writing()
        assert not one.journal.lost.is_set()
        await one.open()
        assert await one.all() == [0, 1]


@looped
async def test_a_store_that_a_look_finds_damaged_is_lost(tmp_path: Path):
    def fail(*_: object) -> None:
        raise ValueError("damage that a test makes")

    async with kept(tmp_path, Clock()) as (_, one):
        with pytest.raises(IndexLostError):
            await one.journal.run(fail)
        assert one.journal.lost.is_set()
