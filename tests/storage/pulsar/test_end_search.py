"""The end is found whatever markers stand before it, in whichever ledger."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar.pack import encode_marker
from ropeway.storage.pulsar.terms import claiming
from tests.contracts.log import TOPIC, begin, opened, read_all, record
from tests.storage.pulsar.logs import log_of, settings_for, write

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_a_topic_of_markers_alone_is_empty_and_goes_on(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create(TOPIC, [0])
            for _ in range(5):
                partition = await opened(log, 0)
                assert (partition.first, partition.end) == (0, 0)
                assert await partition.offset_at(0) == 0
                assert await log.query(TOPIC, "key", 0, 9, 9) == []
                await log.release()
            partition = await opened(log, 0)
            assert await begin(partition, record("a")) == 0
            assert await read_all(partition) == ["a"]

    asyncio.run(main())


@pytest.mark.parametrize("count", [1, 9])
def test_owners_that_died_before_they_knew_the_end_are_passed_over(
    pulsar: Pulsar, pulsar_namespace: str, count: int
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            for name in ("a", "b"):
                await begin(partition, record(name))
        for term in range(1, count + 1):
            await write(pulsar, pulsar_namespace, encode_marker(1), claiming(term))
        # Another ledger begins, as after a restart of the broker.
        topic = f"persistent/{pulsar_namespace}/{TOPIC}-partition-0"
        await asyncio.to_thread(pulsar.admin, "PUT", f"{topic}/unload")
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert await begin(partition, record("c")) == 2
            assert await read_all(partition) == ["a", "b", "c"]

    asyncio.run(main())


def test_where_such_a_marker_is_all_there_is_its_least_end_counts(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
        await write(pulsar, pulsar_namespace, encode_marker(7), claiming(4))
        async with log_of(settings) as log:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (7, 7)
            assert await begin(partition, record("a")) == 7
            assert await read_all(partition) == ["a"]

    asyncio.run(main())
