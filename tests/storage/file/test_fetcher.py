"""Fetching: what is read from the disk, and ahead."""

from __future__ import annotations

import asyncio
import errno
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.file.fetcher import (
    AHEAD_BYTES,
    ColdError,
    Fetcher,
    UncheckedError,
    Warm,
    fetch,
    read_ahead,
)
from ropeway.storage.file.files import OpenFiles
from ropeway.storage.file.segment import Segment
from tests.storage.file.descriptors import open_below

if TYPE_CHECKING:
    from pathlib import Path


def test_who_reads_a_segment_on_has_it_read_ahead(tmp_path: Path) -> None:
    segment = Segment(tmp_path, 0, 1 << 30)

    def ahead_of(*ranges: tuple[int, int]) -> int:
        return read_ahead(ColdError(segment, segment.path, list(ranges)))

    assert ahead_of((0, 4096)) == AHEAD_BYTES
    after = 4096 + AHEAD_BYTES
    assert ahead_of((after, 10), (after + 20, 10)) == AHEAD_BYTES
    far = 100 * AHEAD_BYTES
    assert ahead_of((far, 10)) == 0
    assert ahead_of((far + 10, 10)) == AHEAD_BYTES
    assert ahead_of((0, 10)) == 0
    # It is from the last piece that one reads on.
    last = 50 * AHEAD_BYTES
    assert ahead_of((10, 10), (last, 10)) == AHEAD_BYTES
    assert ahead_of((last + 10 + 2 * AHEAD_BYTES, 10)) == AHEAD_BYTES
    assert read_ahead(ColdError(segment, segment.index_path, [(10, 10)])) == 0


def test_what_is_fetched_is_the_same_with_more_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    for ahead_bytes in (0, AHEAD_BYTES):
        descriptor, found = fetch(path, [(5, 3), (98, 4)], ahead_bytes)
        os.close(descriptor)
        assert found == {("file", 5, 3): b"\5\6\7", ("file", 98, 4): b"bc\0\0"}


def test_the_kernel_is_told_what_is_read_ahead_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda _, place, size, __: told.append((place, size))
    )
    for ahead_bytes in (0, AHEAD_BYTES):
        descriptor, _ = fetch(path, [(5, 3), (98, 4)], ahead_bytes)
        os.close(descriptor)
        assert bool(told) is bool(ahead_bytes)
    assert told[0][0] == 5
    assert sum(told[-1]) >= 102 + AHEAD_BYTES


def test_a_disk_that_fails_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setattr(os, "pread", broken)
    with pytest.raises(OSError, match="Input/output"):
        fetch(tmp_path / "file", [(0, 1)], 0)
    assert open_below(tmp_path) == 0


def test_a_check_of_what_was_dropped_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """Retention deletes files while a thread looks whether they are whole."""
    segment = Segment(tmp_path, 0, 1 << 16)

    async def check(one: Segment) -> None:
        one.index_path.read_bytes()

    async def warm() -> None:
        wanted = Warm()
        wanted.missing = UncheckedError(segment)
        with ThreadPoolExecutor(1) as threads:
            await Fetcher(OpenFiles(1), threads, check, skip=False).warm(wanted)

    with pytest.raises(LogUnavailableError, match=r"cannot read .*index: No such file"):
        asyncio.run(warm())
    segment.gone = True
    asyncio.run(warm())
