"""What Pulsar deletes is noticed, and what it does not answer is told in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.storage.api import LogUnavailableError, OutcomeUnknownError
from ropeway.storage.pulsar.upkeep import Upkeep
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import OUTCOME_S, log_of, settings_for, until
from tests.system.process import stopped
from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.storage.pulsar.partition import PulsarPartition

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def own_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A Pulsar that may be stopped, with ledgers of ten entries."""
    server = Pulsar(
        tmp_path_factory.mktemp("own"),
        settings={
            "managedLedgerMaxEntriesPerLedger": "10",
            "managedLedgerMinLedgerRolloverTimeMinutes": "0",
            "brokerDeduplicationEntriesInterval": "10",
            # Until it has noted what it has seen, a broker deletes nothing of it.
            "brokerDeduplicationSnapshotFrequencyInSeconds": "1",
            "brokerDeduplicationSnapshotIntervalSeconds": "1",
        },
    )
    try:
        server.start()
        yield server
    finally:
        server.kill()


def test_retention_moves_the_first_offset_up_and_offsets_never_restart(
    own_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        settings = settings_for(own_pulsar, "public/trimmed", trim_check_s=0.5)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            for number in range(35):
                await begin(partition, record(str(number)), store_ms=number)
            retention = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
            path = "namespaces/public/trimmed/retention"
            await asyncio.to_thread(own_pulsar.admin, "POST", path, retention)
            topic = f"persistent/public/trimmed/{TOPIC}-partition-0"

            async def trim() -> None:
                await asyncio.to_thread(own_pulsar.admin, "POST", f"{topic}/trim")
                await asyncio.sleep(0.2)

            await until(lambda: partition.first > 0, trim)
            first, end = partition.first, partition.end
            assert 0 < first < end == 35
            assert await read_all(partition) == [str(i) for i in range(first, 35)]
            assert await partition.offset_at(0) == first
            assert await partition.store_time(0) is None
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert partition.end == 35
            assert partition.first >= first
            assert await begin(partition, record("35")) == 35

    asyncio.run(main())


def test_where_everything_was_deleted_the_topic_says_again_where_offsets_go_on(
    own_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        settings = settings_for(own_pulsar, "public/emptied", trim_check_s=0.5)
        topic = f"persistent/public/emptied/{TOPIC}-partition-0"
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            for number in range(3):
                await begin(partition, record(str(number)))
            retention = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
            path = "namespaces/public/emptied/retention"
            await asyncio.to_thread(own_pulsar.admin, "POST", path, retention)
            # The ledger that is being written is never deleted; an unload ends it.
            await asyncio.to_thread(own_pulsar.admin, "PUT", f"{topic}/unload")
            terms: list[object] = []

            async def trim() -> None:
                await asyncio.to_thread(own_pulsar.admin, "POST", f"{topic}/trim")
                await asyncio.sleep(0.2)
                if partition.appender is not None:
                    terms.append(partition.appender._term)

            await until(lambda: terms[-1:] == [1], trim)
            assert (partition.first, partition.end) == (3, 3)
        # What a broker does after six hours, another name does at once.
        settings = settings_for(own_pulsar, "public/emptied", producer_name="another")
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (3, 3)
            assert await begin(partition, record("3")) == 3

    asyncio.run(main())


def test_a_pulsar_that_stands_still_is_told_and_offsets_go_on_after_it(
    own_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        settings = settings_for(
            own_pulsar, "public/still", outcome_s=OUTCOME_S, wait_ms=300
        )
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            await begin(partition, record("a"))
            with stopped(own_pulsar.pid):
                sent = begin(partition, record("b"))
                await until(lambda: log.overdue_ms() > 300)
                with pytest.raises(LogUnavailableError, match="busy: "):
                    begin(partition, record("refused"))
                with pytest.raises(OutcomeUnknownError, match="did not answer in time"):
                    await sent
                with pytest.raises(LogUnavailableError, match="outcome of earlier"):
                    begin(partition, record("refused"))
            await until(lambda: partition.end == 2)
            assert log.overdue_ms() == 0
            assert await begin(partition, record("c")) == 2
            assert await read_all(partition) == ["a", "b", "c"]

    asyncio.run(main())


def test_what_waits_is_given_up_also_after_a_fault_that_nobody_foresaw(
    pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = []
    give_up = Upkeep._give_up

    def failing(self: Upkeep, now: float) -> None:
        failed.append("give up")
        if len(failed) == 1:
            raise ValueError("a fault of this test")
        give_up(self, now)

    async def main() -> None:
        monkeypatch.setattr(Upkeep, "_give_up", failing)
        settings = settings_for(pulsar, "public/unforeseen", trim_check_s=0.1)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            await opened(log, 0)
            kept = log._upkeep._refresh
            refreshed = []

            async def refreshing(partition: PulsarPartition) -> None:
                refreshed.append(partition)
                if len(refreshed) == 1:
                    raise ValueError("another one")
                await kept(partition)

            log._upkeep._refresh = refreshing
            await until(lambda: len(failed) > 1 and len(refreshed) > 1)

    with capture_logs() as logs:
        asyncio.run(main())
    told = [one["event"] for one in logs if one["log_level"] == "error"]
    assert sorted(told) == [
        "cannot tell what retention has deleted",
        "what waits was not looked at",
    ]
