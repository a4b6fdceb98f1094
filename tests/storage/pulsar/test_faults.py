"""Pulsar dies and comes back: what was acknowledged is stored once, in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogError, LogUnavailableError, OutcomeUnknownError
from ropeway.storage.pulsar.connection import Connection
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for, until
from tests.system.process import stopped

if TYPE_CHECKING:
    from ropeway.storage.api import Partition
    from ropeway.storage.pulsar.errors import PulsarError
    from tests.system.pulsar import Pulsar

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    # A killed Pulsar comes back in ten seconds, or in minutes on a loaded machine.
    pytest.mark.timeout(1200),
]

KILLS = 2

APPENDERS = 20


class Flood:
    """Appends to a partition without end, and remembers what was acknowledged."""

    def __init__(self, partition: Partition) -> None:
        self.acknowledged: dict[int, str] = {}
        self.unknown: list[str] = []
        self.refused = 0
        self._stopping = False
        self._partition = partition
        self._appending: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin, several at a time."""
        names = map(str, range(APPENDERS))
        self._appending = [asyncio.create_task(self._append(one)) for one in names]

    async def stop(self) -> None:
        """Return when none is under way."""
        self._stopping = True
        await asyncio.gather(*self._appending)

    async def _append(self, name: str) -> None:
        number = 0
        while not self._stopping:
            text = f"{name}.{number}"
            number += 1
            try:
                offset = await begin(self._partition, record(text))
            except OutcomeUnknownError:
                self.unknown.append(text)
            except LogUnavailableError:
                self.refused += 1
                await asyncio.sleep(0.01)
            else:
                assert offset not in self.acknowledged
                self.acknowledged[offset] = text


def test_a_killed_pulsar_loses_repeats_and_reorders_nothing(
    mortal_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        settings = settings_for(mortal_pulsar, "public/killed", outcome_s=3)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            flood = Flood(partition)
            flood.start()
            for _ in range(KILLS):
                seen = len(flood.acknowledged)
                await until(lambda seen=seen: len(flood.acknowledged) > seen + 500)  # type: ignore[misc]
                await asyncio.to_thread(mortal_pulsar.kill)
                await until(lambda: len(flood.unknown) > 0)
                await asyncio.to_thread(mortal_pulsar.start)
                seen = len(flood.acknowledged)
                await until(lambda seen=seen: len(flood.acknowledged) > seen + 500)  # type: ignore[misc]
            await flood.stop()
            assert flood.refused > 0
            end = partition.end
            check(await read_all(partition), flood, end)
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert partition.end == end
            check(await read_all(partition), flood, end)

    asyncio.run(main())


def test_a_broker_that_is_given_up_for_nothing_loses_repeats_and_reorders_nothing(
    mortal_pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[PulsarError] = []
    abort = Connection.abort

    def noted(one: Connection, error: PulsarError) -> None:
        if "no byte came" in str(error):
            given_up.append(error)
        abort(one, error)

    monkeypatch.setattr(Connection, "abort", noted)

    async def main() -> None:
        settings = settings_for(
            mortal_pulsar, "public/paused", keep_alive_ms=2000, outcome_s=1
        )
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            flood = Flood(partition)
            flood.start()
            await until(lambda: len(flood.acknowledged) > 100)
            # What it has not read by then it reads, of both connections.
            with stopped(mortal_pulsar.pid):
                await until(lambda: len(given_up) > 0)
            seen = len(flood.acknowledged)
            await until(lambda: len(flood.acknowledged) > seen + 100)
            await flood.stop()
            assert flood.unknown
            end = partition.end
            check(await read_all(partition), flood, end)

    asyncio.run(main())


def check(texts: list[str], flood: Flood, end: int) -> None:
    """All that was acknowledged is where it was said, once; the rest was unknown."""
    assert len(texts) == end == len(set(texts))
    for offset, text in flood.acknowledged.items():
        assert texts[offset] == text
    others = set(texts) - set(flood.acknowledged.values())
    assert others <= set(flood.unknown)
    for name in range(APPENDERS):
        order = [int(t.split(".")[1]) for t in texts if t.split(".")[0] == str(name)]
        assert order == sorted(order)


def test_a_log_opens_and_appends_while_pulsar_is_away_only_later(
    mortal_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        settings = settings_for(mortal_pulsar, "public/away", open_s=2)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            await asyncio.to_thread(mortal_pulsar.kill)
            with pytest.raises(LogUnavailableError):
                await opened(log, 0)
            with pytest.raises(LogUnavailableError, match="does not answer"):
                await log.create("another", [0])
            with pytest.raises(LogUnavailableError, match="does not answer"):
                await log.delete(TOPIC)
            assert log.topics() == {TOPIC: frozenset({0})}
            await asyncio.to_thread(mortal_pulsar.start)

            partition = log.partition(TOPIC, 0)
            stored: list[int] = []

            async def again() -> None:
                # An opening that was given up may still reach the broker, and fence
                # the one after it: then it is opened once more.
                try:
                    await log.ready(TOPIC)
                    stored.append(await begin(partition, record("a")))
                except LogError:
                    return

            await until(lambda: len(stored) > 0, again)
            assert (await read_all(partition))[stored[0]] == "a"
            assert partition.end == stored[0] + 1

    asyncio.run(main())
