"""Rolling and sealing: one file after the other, each with its index."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from ropeway.storage.file import FileLogSettings, open_log, segment
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.storage.file.descriptors import open_below

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SETTINGS = FileLogSettings(segment_bytes=1 << 16, open_files=3)


def test_sealed_segments_have_an_index_and_no_spare_bytes(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        for _ in range(10):
            await begin(log.partition(TOPIC, 0), record("x" * 20_000))
        await log.close()

    asyncio.run(main())
    paths = sorted(tmp_path.glob("*.log"))
    assert [path.stem for path in paths] == [f"{i << 16:020}" for i in range(4)]
    for path in paths[:-1]:
        assert path.with_suffix(".index").exists()
        assert path.stat().st_size < 1 << 16
    assert not paths[-1].with_suffix(".index").exists()


def test_open_descriptors_do_not_grow_with_segments(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        counts = []
        for _ in range(3):
            for _ in range(30):
                await begin(partition, record("x" * 20_000))
            await read_all(partition)
            await log.flush()
            counts.append(open_below(tmp_path))
        assert min(counts) > 0
        assert max(counts) - min(counts) <= 4
        await log.close()

    asyncio.run(main())
    assert open_below(tmp_path) == 0


def test_a_segment_that_cannot_be_synced_at_sealing_stops_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)

        def broken(_: int) -> None:
            raise OSError("no")

        monkeypatch.setattr(os, "fdatasync", broken)
        for _ in range(4):
            await begin(partition, record("x" * 20_000))
        while log._writer.refusal is None:  # noqa: ASYNC110 - set by a thread
            await asyncio.sleep(0.001)
        monkeypatch.undo()
        assert "read-only" in str(log._writer.refusal)
        await log.close()

    asyncio.run(main())


def test_a_segment_with_very_many_keys_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys are in memory until it is sealed, so they are bounded for themselves."""
    monkeypatch.setattr(segment, "MAX_KEY_BYTES", 1 << 16)
    settings = FileLogSettings(segment_bytes=1 << 24)
    words = [f"{number:x}" for number in range(1 << 11)]
    count = 40

    async def write() -> None:
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        for number in range(count):
            await begin(partition, record("x", 0, [*words, f"number-{number}"]))
        await log.close()

    async def read() -> None:
        log = open_log(tmp_path, settings)
        assert len(await read_all(log.partition(TOPIC, 0))) == count
        for number in range(count):
            (found,) = await log.query(TOPIC, f"number-{number}", 0, 9999, 20)
            assert found.offset == number
        await log.close()

    asyncio.run(write())
    # Each of 40 messages has 16 KiB of keys; four fill a segment.
    assert len(list(tmp_path.glob("*.log"))) in (10, 11)
    asyncio.run(read())
