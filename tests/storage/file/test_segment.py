"""Segment files: made whole or not at all, and blocks likewise."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.file.segment import bases, create, write_block, write_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_segment_has_its_bytes_set_aside_and_is_listed(tmp_path: Path) -> None:
    for base in (70_000, 0):
        segment = create(tmp_path, base, 65_536)
        assert segment.path.stat().st_size == 65_536
        assert segment.path.stat().st_blocks * 512 >= 65_536
        os.close(segment.descriptor)
    (tmp_path / "notes.log").touch()
    assert bases(tmp_path) == [0, 70_000]


def test_nothing_is_left_where_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        create(tmp_path, 0, 65_536)
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_carried_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = create(tmp_path, 0, 65_536)
    monkeypatch.setattr(
        os, "pwritev", lambda fd, pieces, at: os.pwrite(fd, pieces[0][:3], at)
    )
    segment.written = 10
    write_block(segment, [b"head", b"body"])
    assert segment.path.read_bytes()[:20] == bytes(10) + b"headbody" + bytes(2)
    os.close(segment.descriptor)


def test_a_block_that_cannot_be_cleared_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = create(tmp_path, 0, 65_536)

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pwritev", lambda *_: 3)
    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(OSError, match="Input/output") as failed:
        write_block(segment, [b"head", b"body"])
    assert isinstance(failed.value.__cause__, OSError)
    os.close(segment.descriptor)


def test_a_file_is_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_file(path, [b"one", bytearray(b"two")])
    assert path.read_bytes() == b"onetwo"

    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        write_file(path, [b"three"])
    assert path.read_bytes() == b"onetwo"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_get_its_name_is_an_error_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(path, [b"one"])
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_synced_with_all_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, sizes = os.fsync, []

    def noted(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_file(tmp_path / "file", [b"one", b"two"])
    assert sizes[0] == 6
