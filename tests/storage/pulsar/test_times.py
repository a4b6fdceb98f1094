"""Times are found in a topic of many packs, from memory and from Pulsar."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.contracts.log import TOPIC, begin, opened, record
from tests.storage.pulsar.logs import log_of, settings_for

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["pulsar", "memory"])
def test_every_time_is_found_as_a_plain_search_finds_it(
    pulsar: Pulsar, pulsar_namespace: str, tail_bytes: int
) -> None:
    stored = [10 * (i // 4) for i in range(150)]

    async def main() -> None:
        settings = settings_for(
            pulsar, pulsar_namespace, tail_bytes=tail_bytes, positions=4
        )
        async with log_of(settings) as log:
            await log.create(TOPIC, [0])
            partition = await opened(log, 0)
            for at in range(0, 150, 3):
                for ms in stored[at : at + 3]:
                    future = begin(partition, record("x"), store_ms=ms)
                await future
            for ms in (-1, 0, 5, 100, 101, 189, 370, 371):
                lower = next((i for i, one in enumerate(stored) if one >= ms), 150)
                upper = max((i for i, one in enumerate(stored) if one <= ms), default=0)
                assert await partition.offset_at(ms) == lower
                assert await partition.offset_at(ms, upper=True) == upper
            for offset in (0, 77, 149):
                assert await partition.store_time(offset) == stored[offset]

    asyncio.run(main())
