"""The contract of derived stores, for each part that has one."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.lite.follower import Follower
from ropeway.gateway.node import backoff, fold, names
from ropeway.gateway.node.index_thread import IndexThread
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.node.timer.intake import Intake
from ropeway.gateway.pop import store
from ropeway.gateway.pop.journal import Journal
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.storage.file.offsets import open_offsets
from tests.broker_contexts import HOST, broker_of
from tests.contracts.derived_store import DerivedStoreContract, State, state_of
from tests.gateway.lite.rig import PARENT
from tests.gateway.lite.rig import rigged as lite_rigged
from tests.gateway.node.timer.rig import START_MS, WINDOW_MS
from tests.gateway.node.timer.rig import rigged as timer_rigged
from tests.gateway.pop.rig import Clock
from tests.remoting import looped, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.contracts.derived_store import Part
    from tests.gateway.lite.rig import Rig as LiteRig
    from tests.gateway.node.timer.rig import Rig as TimerRig


@pytest.fixture(autouse=True)
def _small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "READ_COUNT", 1)
    monkeypatch.setattr(backoff, "RETRY_S", 0.01)


class Pops:
    """The journal of what is in flight."""

    def __init__(self, app: App, path: Path) -> None:
        self.app = app
        self.clock = Clock()
        self.writer = self.journal(path / "writer")
        self.count = 0

    def journal(self, directory: Path) -> Journal:
        broker = broker_of(self.app.node, self.clock)
        return Journal(broker, directory, lambda _: None)

    async def grow(self) -> None:
        place, now_ms = ("readers", "orders", 0), self.clock()
        for _ in range(4):
            self.count += 1
            key, gone = (
                store.key_of(place, start, now_ms, now_ms + 60_000)
                for start in (self.count, self.count // 2)
            )
            value = store.value_of(0, 1, (self.count,))
            await self.writer.put([(key, value), (gone, b"")])

    async def fold(self, directory: Path, *, anew: bool = False) -> State:
        one = self.journal(directory)
        try:
            await one.open(lambda _: None, anew=anew)
            return await one.run(state_of)
        finally:
            await one.close()


class Timers:
    """The intake of timers."""

    def __init__(self, rig: TimerRig) -> None:
        self.rig = rig
        self.count = 0

    async def grow(self) -> None:
        for _ in range(4):
            self.count += 1
            self.rig.send(f"{self.count}", START_MS + 9000 - self.count)
        self.rig.recall(f"{self.count}", START_MS + 9000 - self.count)
        await self.rig.settled()

    async def fold(self, directory: Path, *, anew: bool = False) -> State:
        thread = IndexThread("timers", Index, directory)
        try:
            await thread.open(anew=anew)
            partition = self.rig.timer.topic.partitions[0]
            one = Intake(partition, thread, WINDOW_MS)
            await one.begin(START_MS - 1, 0)
            await one.catch_up(START_MS - 1)
            return await thread.run(state_of)
        finally:
            await thread.close()


class LiteTopics:
    """The follower of lite topics."""

    def __init__(self, rig: LiteRig) -> None:
        self.rig = rig
        self.count = 0

    async def grow(self) -> None:
        for _ in range(3):
            self.count += 1
            await self.rig.send(f"room-{self.count % 2}", f"{self.count}")

    async def fold(self, directory: Path, *, anew: bool = False) -> State:
        node = self.rig.app.node
        one = Follower(node.topics, node.log, directory, lambda *_: None)
        if anew:
            await one.store.open(anew=True)
        task = asyncio.create_task(one.run())

        def followed() -> bool:
            parent = one.parents.get(PARENT)
            return parent is not None and not one.is_behind(parent)

        try:
            await until(followed)
            return await one.store.run(state_of)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await one.close()


def leave_alone(data: Path, kept: set[str]) -> None:
    """Delete all else of a data directory."""
    for path in data.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.rule("derived-state.md", "A start reads what is open")
@looped
@pytest.mark.parametrize("offsets", ["lost", "ahead of the log"])
async def test_what_has_no_store_is_known_from_the_log_alone(
    tmp_path: Path, offsets: str
) -> None:
    entries = encode_batch([BatchEntry(0, b"x", "")])
    half = {"TRAN_MSG": "true", "PGROUP": "producers"}
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"before")
        node = app.node
        await client.ask(sending("orders", sys_flag=4, pairs=half), b"half")
        staged = [await node.batches.stage("sink", "orders", 0, entries, HOST)]
        await node.batches.commit("sink", 4, {"broker-0": staged})
    leave_alone(tmp_path, {"log", "routes.db"})
    if offsets != "lost":
        kept = open_offsets(tmp_path)
        kept.commit(names.TRANSACTIONS_GROUP, names.HALF_TOPIC, 0, 1000)
        kept.commit(names.BATCHES_GROUP, names.BATCHES_TOPIC, 0, 1000)
        await kept.close()
    async with running(tmp_path) as (app, _):
        await app.node.transactions.known()
        assert len(app.node.transactions) == 1
        assert await app.node.batches.last("sink") == 4


class TestPops(DerivedStoreContract):
    """Popping."""

    @asynccontextmanager
    async def part(self, path: Path) -> AsyncIterator[Part]:
        async with running(path / "node") as (app, _):
            one = Pops(app, path)
            yield one
            await one.writer.close()


class TestTimers(DerivedStoreContract):
    """Timers."""

    @asynccontextmanager
    async def part(self, path: Path) -> AsyncIterator[Part]:
        async with timer_rigged(path / "node") as rig:
            yield Timers(rig)


class TestLiteTopics(DerivedStoreContract):
    """Lite topics."""

    @asynccontextmanager
    async def part(self, path: Path) -> AsyncIterator[Part]:
        async with lite_rigged(path / "node") as rig:
            yield LiteTopics(rig)
