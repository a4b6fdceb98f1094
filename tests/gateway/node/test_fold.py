"""The loop of folds: every record once, in order, to the end as it is then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import fold
from ropeway.gateway.node.fold import chunks_from, records_in
from ropeway.gateway.wire import message
from tests.gateway.node.timer.rig import START_MS, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
@pytest.mark.parametrize("count", [1, 2, 1024])
async def test_records_come_once_in_order_up_to_the_end_as_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
):
    monkeypatch.setattr(fold, "READ_COUNT", count)
    async with rigged(tmp_path) as rig:
        for number in range(5):
            rig.send(f"{number}", START_MS + 10_000)
        await rig.settled()
        partition = rig.timer.topic.partitions[0]
        found = []
        async for chunk in chunks_from(partition, 1):
            found += [message.decode(one).queue_offset for one in records_in(chunk)]
            assert found[-1] + 1 == chunk.next_offset
            if len(found) == 4:
                rig.send("later", START_MS + 10_000)
                await rig.settled()
        assert found == [1, 2, 3, 4, 5]
        upto = [
            message.decode(one).body
            async for chunk in chunks_from(partition, 0, 2)
            for one in records_in(chunk)
        ]
        assert len(upto) == 2
        assert [one async for one in chunks_from(partition, partition.end)] == []
