"""Moving what stays in hand: under load, and where the log refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.pop import upkeep
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogBusyError, LogUnavailableError
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


@looped
async def test_what_was_stored_again_and_cannot_be_noted_comes_once(
    tmp_path: Path, monkeypatch
):
    """Where a disk is full between the two, and has room again afterwards."""
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(2)
        await rig.consumer.take(2)
        await rig.to_ledger()
        await until(lambda: not rig.pop.ledger.is_writing())
        (partition,) = rig.app.node.topics.get(names.POP_TOPIC).partitions
        kind, append = type(partition), type(partition).append
        refused = []

        def refuse(to, *more):
            if to is partition:
                refused.append(to)
                raise LogUnavailableError("no space left")
            append(to, *more)

        monkeypatch.setattr(kind, "append", refuse)
        rig.pass_time(INVISIBLE_MS)
        for looks in range(1, 4):
            await until(lambda looks=looks: len(refused) >= looks)
            await rig.pass_time_until_done(10_000)
        monkeypatch.setattr(kind, "append", append)
        await rig.pass_time_until_done(10_000)
        await rig.until_empty()
        (retries,) = rig.app.node.topics.get(RETRY_V1).partitions
        assert retries.end == 2


@looped
async def test_messages_whose_retry_topic_cannot_be_made_come_when_it_can(
    tmp_path: Path, monkeypatch
):
    """They stayed away until the node began anew."""
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(1)
        await rig.consumer.take(1)
        await rig.to_ledger()
        await until(lambda: not rig.pop.ledger.is_writing())
        topics = rig.app.node.topics
        asked = []

        async def refuse(name, _count):
            asked.append(name)
            raise RouteError("no ZooKeeper")

        with monkeypatch.context() as patch:
            patch.setattr(
                type(topics), "ensure_derived", lambda _, *more: refuse(*more)
            )
            await rig.pass_time_until_done(INVISIBLE_MS)
            await until(lambda: asked)
            await until(rig.pop.is_idle)
        await until(lambda: not rig.pop.ledger.is_writing())
        await rig.pass_time_until_done(11_000)
        (retries,) = topics.get(RETRY_V1).partitions
        await until(lambda: retries.end == 1)
        await rig.until_empty()
