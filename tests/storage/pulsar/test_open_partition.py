"""Offsets go on where the topic ends, by what the broker and the newest entries say."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from ropeway.storage.api import LogDamagedError, LogLimitError
from ropeway.storage.pulsar.end_offsets import EndOffsets
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.entry_reader import Found
from ropeway.storage.pulsar.open_partition import Opening
from ropeway.storage.pulsar.pack import Pack, encode, encode_marker
from ropeway.storage.pulsar.terms import LAST_TERM, after, claiming
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import entries, log_of, settings_for, truncate, write

if TYPE_CHECKING:
    from ropeway.storage.pulsar import PulsarLog
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


async def stored(log: PulsarLog, *names: str) -> None:
    await log.create(TOPIC, [0, 1])
    partition = await opened(log, 0)
    for name in names:
        await begin(partition, record(name))


def test_a_forgotten_producer_goes_on_by_the_newest_pack(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """What a broker does after six hours, another name does at once."""

    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await stored(log, "a", "b")
        settings = settings_for(pulsar, pulsar_namespace, producer_name="another")
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert await begin(partition, record("c")) == 2
            assert await read_all(partition) == ["a", "b", "c"]

    asyncio.run(main())


def test_a_truncated_topic_goes_on_by_what_the_broker_knows(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await stored(log, "a", "b", "c")
        await asyncio.to_thread(truncate, pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (3, 3)
        # From here on it stands in the topic, too: the broker may forget.
        settings = settings_for(pulsar, pulsar_namespace, producer_name="another")
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (3, 3)
            assert await begin(partition, record("d")) == 3
            assert await read_all(partition) == ["d"]

    asyncio.run(main())


def test_a_writer_that_is_not_ours_is_refused_and_others_go_on(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await stored(log, "a")
        await write(pulsar, pulsar_namespace, b"hello", 7, "stranger")
        before = await asyncio.to_thread(entries, pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            for _ in range(2):
                with pytest.raises(
                    LogDamagedError,
                    match=r"-partition-0: entry \d+:3 is 5 bytes .*'hell'",
                ):
                    await opened(log, 0)
            await log.create("others", [0])
            assert await begin(await opened(log, 0, "others"), record("x")) == 0
        assert await asyncio.to_thread(entries, pulsar, pulsar_namespace) == before

    asyncio.run(main())


def test_a_pack_whose_sequence_id_says_otherwise_is_refused(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await stored(log, "a", "b")
        pack = encode([([record("c")], 1, None, 0)], 2)
        await write(pulsar, pulsar_namespace, pack, after(0, 9))
        async with log_of(settings) as log:
            with pytest.raises(LogDamagedError, match=r"before offset 3 .* for 9; all"):
                await opened(log, 0)

    asyncio.run(main())


def test_there_is_a_last_term(pulsar: Pulsar, pulsar_namespace: str) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await stored(log, "a")
        marker = encode_marker(1)
        await write(pulsar, pulsar_namespace, marker, claiming(LAST_TERM - 1))
        async with log_of(settings) as log:
            await opened(log, 0)
            await log.release()
            with pytest.raises(LogLimitError, match=f"the last is {LAST_TERM}"):
                await opened(log, 0)

    asyncio.run(main())


@pytest.mark.parametrize(("known", "says"), [(after(2, 9), True), (after(3, 9), False)])
def test_packs_that_are_missing_at_the_end_are_told(known: int, says: bool) -> None:
    """By an earlier owner's marker alone, in a later term, nobody can tell."""
    nothing: Any = None
    producer: Any = SimpleNamespace(last_sequence_id=known)
    partition: Any = SimpleNamespace(full_name="orders-partition-0")
    opening = Opening(nothing, nothing, partition, producer, EndOffsets(), None)
    marker = Pack(memoryview(encode_marker(5)), 5, 0, 0)
    with capture_logs() as logs:
        opening._look_for_losses(Found(marker, Position(1, 1), after(2, 5)))
    assert [(one["end"], one["expected"]) for one in logs] == [(5, 9)] * says
