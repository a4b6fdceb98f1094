"""The contract of derived stores, for each part that has one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.lite import follower
from ropeway.gateway.lite.follower import Follower
from ropeway.gateway.node.index_thread import IndexThread
from ropeway.gateway.node.timer import intake
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.node.timer.intake import Intake
from ropeway.gateway.pop import journal, store
from ropeway.gateway.pop.journal import Journal
from ropeway.gateway.wire import message
from tests.contracts.derived_store import DerivedStoreContract, State, state_of
from tests.gateway.lite.rig import PARENT
from tests.gateway.lite.rig import rigged as lite_rigged
from tests.gateway.node.timer.rig import START_MS, WINDOW_MS
from tests.gateway.node.timer.rig import rigged as timer_rigged
from tests.gateway.pop.rig import Clock
from tests.remoting import running, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.contracts.derived_store import Part
    from tests.gateway.lite.rig import Rig as LiteRig
    from tests.gateway.node.timer.rig import Rig as TimerRig


@pytest.fixture(autouse=True)
def _small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_READ_COUNT", 1)
    monkeypatch.setattr(intake, "_COUNT", 1)
    monkeypatch.setattr(follower, "_READ_COUNT", 1)
    monkeypatch.setattr(follower, "_RETRY_S", 0.01)


class Pops:
    """The journal of what is in flight."""

    def __init__(self, app: App, path: Path) -> None:
        self.app = app
        self.clock = Clock()
        self.writer = self.journal(path / "writer")
        self.count = 0

    def journal(self, directory: Path) -> Journal:
        node = self.app.node
        host = message.pack_host("127.0.0.1", 1)
        return Journal(
            node.topics, node.log, directory, lambda: host, self.clock, lambda _: None
        )

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
        thread = IndexThread("timers", Index.open, directory)
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
