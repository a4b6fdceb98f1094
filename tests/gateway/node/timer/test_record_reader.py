"""Records here and there are found, whatever lies between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.timer.record_reader import read_scattered
from ropeway.gateway.wire.message import decode
from tests.gateway.node.timer.rig import START_MS, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_no_more_is_read_than_lies_near(tmp_path: Path, monkeypatch):
    async with rigged(tmp_path) as rig:
        for number in range(200):
            rig.send(f"{number}", START_MS + 1_000_000)
        await rig.settled()
        (partition,) = rig.timer.topic.partitions
        read_now, asked = type(partition).read_now, []

        def noted(self, offset: int, count: int, size: int):
            asked.append((offset, count))
            return read_now(self, offset, count, size)

        monkeypatch.setattr(type(partition), "read_now", noted)
        assert len(await read_scattered(partition, [3, 4, 36, 150])) == 4
        assert asked == [(3, 34), (150, 1)]


@looped
@pytest.mark.parametrize(
    "offsets", [[], [0], [199, 0], list(range(200)), [3, 4, 40, 41, 150], [500, 7]]
)
async def test_what_is_there_is_found(tmp_path: Path, offsets: list[int]):
    async with rigged(tmp_path) as rig:
        for number in range(200):
            rig.send(f"{number}" * 9000, START_MS + 1_000_000)
        await rig.settled()
        found = await read_scattered(rig.timer.topic.partitions[0], offsets)
        assert sorted(found) == sorted(set(offsets) - {500})
        for offset, record in found.items():
            assert decode(record).body.decode() == f"{offset}" * 9000
