"""Keys are found newest first, over windows and partitions, with bounded work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar import query
from tests.contracts.log import TOPIC, begin, opened, record
from tests.storage.pulsar.logs import log_of, settings_for

if TYPE_CHECKING:
    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_the_newest_come_first_and_old_ones_beyond_the_bound_not_at_all(
    pulsar: Pulsar, pulsar_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "WINDOW", 7)

    async def main() -> None:
        settings = settings_for(pulsar, pulsar_namespace, tail_bytes=0)
        async with log_of(settings) as log:
            await log.create(TOPIC, [0, 1])
            for number in (0, 1):
                partition = await opened(log, number)
                for at in range(0, 40, 5):
                    batch = [
                        record(f"{number}.{i}", 0, ["all", f"one-{i}", "all"])
                        for i in range(at, at + 5)
                    ]
                    await begin(partition, *batch, store_ms=2 * at + number)

            async def found(key: str, count: int, end_ms: int = 999) -> list[str]:
                hits = await log.query(TOPIC, key, 0, end_ms, count)
                return [hit.data[4:].decode() for hit in hits]

            assert await found("one-17", 9) == ["1.17", "0.17"]
            assert (await found("all", 7))[:6] == [
                f"1.{i}" for i in range(39, 34, -1)
            ] + ["0.39"]
            assert len(await found("all", 999)) == 80
            assert await found("all", 3, end_ms=10) == ["0.9", "0.8", "0.7"]
            monkeypatch.setattr(query, "MAX_LOOKED_BYTES", 1)
            assert await found("one-0", 9) == []
            assert await found("one-39", 9) == ["1.39", "0.39"]

    asyncio.run(main())
