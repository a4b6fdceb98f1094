"""Moving what stays in hand: under load, and where the log refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.pop import upkeep
from ropeway.storage.api import LogBusyError
from tests.gateway.pop.rig import INVISIBLE_MS, RETRY_V1, rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_more_than_fits_into_one_turn_comes_back_whole(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(upkeep, "DUE_COUNT", 3)
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(30)
        for _ in range(15):
            await rig.consumer.take(2)
        await rig.to_ledger()
        assert rig.in_hand() == (0, 30)
        rig.pass_time(INVISIBLE_MS)
        await until(lambda: rig.in_hand() == (0, 0))
        (partition,) = rig.app.node.topics.get(RETRY_V1).partitions
        assert partition.end == 30
        await rig.until_empty()


@pytest.mark.rule(
    "pop.md",
    "A message that was handed out and is not done is at or above",
)
@looped
async def test_what_cannot_be_written_down_stays_and_holds_progress(
    tmp_path: Path, monkeypatch
):
    async with rigged(tmp_path) as rig:
        await rig.app.node.topics.ensure_derived(names.POP_TOPIC, 1)
        (partition,) = rig.app.node.topics.get(names.POP_TOPIC).partitions
        kind, append = type(partition), type(partition).append

        def refuse(to, *more):
            if to is partition:
                raise LogBusyError("too much waits")
            append(to, *more)

        await rig.consumer.send(2)
        found = await rig.consumer.take(2)
        monkeypatch.setattr(kind, "append", refuse)
        await rig.pass_time_until_done(10_100)
        assert (rig.in_hand(), rig.committed()) == ((2, 0), 0)
        assert await rig.consumer.ack(found, 1) == 0
        monkeypatch.setattr(kind, "append", append)
        rig.pass_time(1100)
        await until(lambda: rig.in_hand() == (0, 1))
        rig.pass_time(0)
        assert rig.committed() == 2
        assert await rig.consumer.ack(found, 0) == 0
