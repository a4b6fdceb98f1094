"""A log on Pulsar that is trimmed, where its caller keeps the floors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnfitError
from ropeway.storage.pulsar import open_log
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.contracts.trim import TrimContract, fill
from tests.storage.pulsar.logs import followed, log_of, settings_for, until
from tests.storage.pulsar.sharing import Verbatim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ropeway.storage.pulsar import PulsarLog
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


class Keeper:
    """Keeps the floors of a log, as the routes do."""

    def __init__(self) -> None:
        self._floors: dict[str, dict[int, int]] = {}

    def keep(self, log: PulsarLog) -> PulsarLog:
        """Have what is trimmed kept, and forgotten with its topic."""
        trim, delete = log.trim, log.delete

        async def trimmed(
            topic: str, floors: Mapping[int, int], *, dry_run: bool = False
        ) -> dict[int, int]:
            found = await trim(topic, floors, dry_run=dry_run)
            if not dry_run:
                self._floors.setdefault(topic, {}).update(found)
            return found

        async def deleted(topic: str, generation: int = 0) -> None:
            self._floors.pop(topic, None)
            await delete(topic, generation)

        log.trim, log.delete = trimmed, deleted  # type: ignore[method-assign]
        for topic, floors in self._floors.items():
            log.keep_floors(topic, floors)
        return log


class TestTrim(TrimContract):
    @pytest.fixture
    def open_log(
        self, pulsar: Pulsar, pulsar_namespace: str
    ) -> Callable[[], Awaitable[PulsarLog]]:
        keeper = Keeper()
        settings = settings_for(pulsar, pulsar_namespace)

        async def again() -> PulsarLog:
            return keeper.keep(await open_log(settings, prepare=True))

        return again


def test_a_node_that_follows_reads_nothing_that_was_trimmed(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log, log_of(settings) as other:
            await log.create(TOPIC, [0])
            await fill(await opened(log, 0), 0, 4)
            partition = await followed(other)
            await until(lambda: partition.end == 4)
            assert await log.trim(TOPIC, {0: 4}) == {0: 4}
            other.keep_floors(TOPIC, {0: 6})
            # It may hear of a floor before it hears of the records below.
            assert partition.first == 4
            await fill(log.partition(TOPIC, 0), 4, 7)
            await until(lambda: partition.end == 7)
            assert await read_all(partition) == ["6"]

    asyncio.run(main())


def test_no_record_gets_an_offset_below_a_floor(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """Whatever Pulsar has lost: what is acknowledged is never hidden."""

    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            log.keep_floors(TOPIC, {0: 40})
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (40, 40)
            await begin(partition, record("a"))
            assert (await read_all(partition), partition.end) == (["a"], 41)

    asyncio.run(main())


def test_what_native_clients_read_or_keeps_the_last_of_each_key_is_refused(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            partition.compacted = True
            with pytest.raises(LogUnfitError, match="last message of each key"):
                await log.trim(TOPIC, {0: 1}, dry_run=True)
            partition.compacted, partition.converter = False, Verbatim()
            with pytest.raises(LogUnfitError, match="namespaces set-retention"):
                await log.trim(TOPIC, {0: 1}, dry_run=True)

    asyncio.run(main())
