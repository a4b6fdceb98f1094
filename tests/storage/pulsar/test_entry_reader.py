"""Entries are read by their positions; whoever wants a pack gets past markers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import NoSuchPartitionError
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.entry_reader import AT_ONCE, Scan, probe, scan, unavailable
from ropeway.storage.pulsar.errors import TopicNotFoundError
from tests.contracts.log import TOPIC, begin, opened, record
from tests.storage.pulsar.logs import log_of, settings_for

if TYPE_CHECKING:
    from ropeway.storage.pulsar.partition import PulsarPartition
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_the_next_pack_is_found_behind_markers_and_none_behind_the_last(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    async def main() -> None:
        async with log_of(settings_for(pulsar, pulsar_namespace)) as log:
            await log.create(TOPIC, [0])
            for _ in range(AT_ONCE):
                partition: PulsarPartition = await opened(log, 0)  # type: ignore[assignment]
                await log.release()
            await log.ready(TOPIC)
            await begin(partition, record("a"))
            await log.release()
            await log.ready(TOPIC)
            client = log._client
            at = 2 * AT_ONCE + 2
            async with Scan(client, partition, "earliest") as all_entries:
                # The last of all was still on its way when the partition was ready.
                found = [await all_entries.next() for _ in range(at + 3)]
                last = found[-1].position
                assert await all_entries.last_position() == last
            assert [one.pack.count for one in found] == [0] * at + [1, 0, 0]
            assert [one.term for one in found[::2]][:AT_ONCE] == list(range(AT_ONCE))
            tells = [one.tells for one in found]
            assert tells == [False, True] * (at // 2) + [True, False, True]
            pack = found[at].position
            for start in (Position(0, 0), found[5].position, pack):
                one = await probe(client, partition, start, last)
                assert one is not None
                assert (one.position, one.spot.offset) == (pack, 0)
            behind = Position(pack.ledger, pack.entry + 1)
            assert await probe(client, partition, behind, last) is None
            first = found[0].position
            assert await probe(client, partition, first, found[5].position) is None
            whole = await scan(client, partition, first, last, lambda _: False)
            assert whole is not None
            assert whole.position == last

    asyncio.run(main())


def test_a_topic_that_is_gone_is_told_from_one_that_cannot_be_had() -> None:
    class Named:
        full_name = "orders-partition-0"

    partition: PulsarPartition = Named()  # type: ignore[assignment]
    error = unavailable(partition, TopicNotFoundError("nothing there"))
    assert isinstance(error, NoSuchPartitionError)
