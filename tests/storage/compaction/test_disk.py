"""Changes of files: whole writes, whole names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ropeway.storage.compaction.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest


def test_pieces_are_written_wholly_though_the_kernel_takes_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writev = os.writev

    def some(descriptor: int, pieces: Sequence[bytes]) -> int:
        return writev(descriptor, [b"".join(pieces)[:700]])

    monkeypatch.setattr("ropeway.storage.compaction.disk.os.writev", some)
    disk = Disk()
    descriptor = disk.create(tmp_path / "file")
    pieces = [b"%04d" % number for number in range(2000)]
    disk.append(descriptor, pieces)
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)


def test_a_file_is_put_under_its_name_and_no_other(tmp_path: Path) -> None:
    disk = Disk()
    disk.make_directory(tmp_path / "a" / "b")
    for text in (b"old", b"new"):
        disk.put(tmp_path / "a" / "b" / "file", [text])
    assert [one.name for one in (tmp_path / "a" / "b").iterdir()] == ["file"]
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"new"
    disk.remove_directory(tmp_path / "a" / "b")
    disk.remove_directory(tmp_path / "a" / "b")
    assert not list((tmp_path / "a").iterdir())
