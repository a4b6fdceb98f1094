"""The log on a real Pulsar begins partitions where it is told, whoever opens them."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import BeginsElsewhereError, LogUnavailableError, LogUnfitError
from ropeway.storage.pulsar import PulsarLog, open_log
from ropeway.storage.pulsar.catalog import Catalog
from ropeway.storage.pulsar.ownership import Ownership
from ropeway.storage.pulsar.terms import LAST_OFFSET
from tests.contracts.beginnings import AT, BeginningContract, fill, text_of
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import followed, log_of, settings_for, truncate, until
from tests.storage.pulsar.sharing import Verbatim, open_shared_log
from tests.storage.pulsar.test_end_offsets import key, leader_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]

MOVED = "moved"
"""A topic that `leader_of` does not make."""
numbers = itertools.count(1)


class TestBeginnings(BeginningContract):
    """Without a broker's state: what the topic itself tells is enough."""

    last_offset = LAST_OFFSET

    @pytest.fixture
    def open_log(
        self, pulsar: Pulsar, pulsar_namespace: str
    ) -> Callable[[], Awaitable[PulsarLog]]:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0)

        async def again() -> PulsarLog:
            return await open_log(settings, prepare=True)

        return again


def test_it_outlives_every_message_and_what_pulsar_knows_of_the_owner(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, state):
            # It came to be by the way, and has no record.
            await log.create(TOPIC, [0], begins={0: AT})
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (AT, AT)
            assert state.get(key(log).replace("end/", "begin/", 1)) == f"{AT}"
        await asyncio.to_thread(truncate, pulsar, pulsar_namespace)
        async with leader_of(pulsar, pulsar_namespace, producer_name="p") as (
            log,
            state,
        ):
            await log.create(TOPIC, [0], begins={0: AT})
            partition = await opened(log, 0)
            assert (partition.first, partition.end, log.misfits) == (AT, AT, 0)
            await fill(partition, AT, 2)
            await until(lambda: state.get(key(log)) == f"{AT + 2}")
            with pytest.raises(BeginsElsewhereError, match=f"begins at offset {AT}"):
                await log.create(TOPIC, [0], begins={0: 0})
        await asyncio.to_thread(truncate, pulsar, pulsar_namespace)
        async with leader_of(pulsar, pulsar_namespace, producer_name="q") as (log, _):
            await log.create(TOPIC, [0], begins={0: AT})
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (AT + 2, AT + 2)
            await log.delete(TOPIC)
            await log.create(TOPIC, [0])
            assert (await opened(log, 0)).end == 0

    asyncio.run(main())


@pytest.mark.parametrize("where", ["before it is made", "before it is opened"])
def test_a_kill_leaves_it_as_told_or_not_there(
    pulsar: Pulsar, pulsar_namespace: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = (Catalog, "create") if where == "before it is made" else (Ownership, "open")

    async def refuse(self: object, *_: object) -> None:
        if not isinstance(self, Ownership) or _ != ([],):
            raise LogUnavailableError("killed")

    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, _):
            with monkeypatch.context() as patch:
                patch.setattr(*what, refuse)
                with pytest.raises(LogUnavailableError, match="killed"):
                    await log.create(MOVED, [0], begins={0: AT})
        async with leader_of(pulsar, pulsar_namespace) as (log, _):
            assert (MOVED in log.topics()) == (what[0] is Ownership)
            # Also for who does not know that it is to begin there.
            await log.create(MOVED, [0])
            partition = await opened(log, 0, MOVED)
            assert (partition.first, partition.end, log.misfits) == (AT, AT, 0)
            await log.create(MOVED, [0], begins={0: AT})
            await fill(partition, AT, 1)

    asyncio.run(main())


def test_another_broker_that_gets_it_goes_on_there(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, _):
            await log.create(MOVED, [0, 1], begins={0: AT, 1: 7})
            async with leader_of(pulsar, pulsar_namespace, broker="c") as (other, _):
                await log.let_go(MOVED, 0)
                await other.create(MOVED, [0])
                partition = await opened(other, 0, MOVED)
                assert (partition.first, partition.end, other.misfits) == (AT, AT, 0)
                await fill(partition, AT, 1)
                await other.create(MOVED, [0], begins={0: AT})

    asyncio.run(main())


def test_who_follows_reads_from_there(pulsar: Pulsar, pulsar_namespace: str) -> None:
    async def main() -> None:
        async with leader_of(pulsar, pulsar_namespace) as (log, _):
            # Once opened where it began by the way, and once where it is told.
            assert (await opened(log, 0)).end == 0
            await log.create(TOPIC, [0], begins={0: AT})
            await fill(await opened(log, 0), AT, 3)
            async with log_of(settings_for(pulsar, pulsar_namespace)) as reader:
                theirs = await followed(reader)
                assert theirs.end == AT + 3
                wanted = [text_of(AT, number) for number in range(3)]
                assert await read_all(theirs, AT) == wanted
                assert await begin(log.partition(TOPIC, 0), record("more")) == AT + 3
                await until(lambda: theirs.end == AT + 4)

    asyncio.run(main())


def test_a_topic_of_native_clients_begins_where_pulsar_counts(
    counting_pulsar: Pulsar,
) -> None:
    async def main() -> None:
        namespace = f"public/beginnings-{next(numbers)}"
        settings = settings_for(counting_pulsar, namespace)
        log = await open_shared_log(settings, Verbatim())
        with pytest.raises(LogUnfitError, match="cannot begin at offset 7; allowed: 0"):
            await log.create(TOPIC, [0], begins={0: 7})
        assert log.topics() == {}
        await log.create(TOPIC, [0], begins={0: 0})
        await log.close()

    asyncio.run(main())
