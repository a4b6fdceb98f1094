"""Derived stores: gone on with where they fit their log, made again where not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node import backoff
from ropeway.gateway.node.backoff import Backoff
from ropeway.gateway.node.derived_store import (
    CHECKPOINT,
    Checkpoint,
    DerivedStore,
    checkpoint_after,
    keep,
    resume,
    status_of,
)
from ropeway.gateway.node.index_thread import IndexLostError, IndexThread
from ropeway.storage.api import LogError
from tests.gateway.node.timer.rig import START_MS, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


def put(store: DerivedStore, checkpoint: Checkpoint) -> None:
    """Write a key as a fold does, together with how far it has come."""
    batch = store._batch()
    batch.put(b"key", b"value")
    store._note(batch, checkpoint)
    store._write(batch)


def harm_size(store: DerivedStore) -> None:
    store._db[CHECKPOINT] = b"another version's"


@looped
@pytest.mark.parametrize(
    ("harm", "kept", "told"),
    [
        ("nothing", True, False),
        ("a crc", False, True),
        ("ahead of the log", False, True),
        ("before the log", False, True),
        ("a size", False, False),
        ("at the floor", False, False),
    ],
)
async def test_a_store_is_gone_on_with_only_if_its_checkpoint_fits(
    tmp_path: Path, harm: str, kept: bool, told: bool
):
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 10)
        rig.send("b", START_MS + 20)
        await rig.settled()
        partition = rig.timer.topic.partitions[0]
        last = (await partition.read(1, 1, 1)).data[0]
        checkpoint = checkpoint_after(last, 2)
        wrong = {
            "a crc": Checkpoint(2, checkpoint.crc ^ 1),
            "ahead of the log": Checkpoint(3, checkpoint.crc),
            "before the log": Checkpoint(0, checkpoint.crc),
        }
        thread = IndexThread("tests", DerivedStore, tmp_path / "store")
        await thread.open()
        await thread.run(put, wrong.get(harm, checkpoint))
        if harm == "a size":
            await thread.run(harm_size)
        with capture_logs() as logs:
            found = await resume(thread, partition, 2 if harm == "at the floor" else -1)
        assert found == (2 if kept else None)
        assert bool(logs) is told
        left = await thread.run(DerivedStore._get, b"key")
        assert left == (b"value" if kept else None)
        await thread.close()


@looped
async def test_a_rebuild_is_told_with_its_end_and_how_long_it_took(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        rig.send("a", START_MS + 10)
        await rig.settled()
        thread = IndexThread("tests", DerivedStore, tmp_path / "store")
        await thread.open()
        assert await resume(thread, rig.timer.topic.partitions[0]) is None
        assert thread.rebuild.is_under_way
        thread.rebuild.begin()  # one that is under way goes on
        thread.rebuild.end()
        ended_ms = thread.rebuild.ended_ms
        assert ended_ms > 0
        thread.rebuild.end()
        assert thread.rebuild.ended_ms == ended_ms
        status = status_of(thread, 3)
        assert (status.store, status.lag_records) == ("tests", 3)
        assert (status.rebuilt_ms, status.rebuild_ms) == (
            ended_ms,
            thread.rebuild.took_ms,
        )
        assert status.size_bytes == sum(
            path.stat().st_size for path in (tmp_path / "store").iterdir()
        )
        await thread.close()


@looped
async def test_a_store_is_made_anew_after_it_was_lost_and_never_otherwise(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(backoff, "RETRY_S", 0.001)
    failures = [IndexLostError("a"), LogError("b"), None, ValueError("c")]
    told: list[bool] = []

    async def work(anew: bool) -> None:
        told.append(anew)
        if len(told) > len(failures):
            raise asyncio.CancelledError
        failure = failures[len(told) - 1]
        if failure is not None:
            raise failure

    paused: list[float] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    with pytest.raises(asyncio.CancelledError):
        await keep("tests", work, Backoff("tests wait", None, pause))
    assert told == [False, True, False, False, False]
    assert paused == [backoff.RETRY_S, backoff.UNFORESEEN_S]
