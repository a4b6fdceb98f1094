"""Derived stores: gone on with where they fit their log, made again where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node.derived_store import (
    CHECKPOINT,
    Checkpoint,
    DerivedStore,
    checkpoint_after,
    resume,
)
from ropeway.gateway.node.index_thread import IndexThread
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
        thread = IndexThread("tests", DerivedStore.open, tmp_path / "store")
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
