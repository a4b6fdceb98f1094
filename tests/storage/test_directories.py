"""Directories are made for their owner; `tests/power` cuts the power behind them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropeway.storage import directories


def test_what_is_missing_above_is_made_likewise(tmp_path: Path):
    made = tmp_path / "a" / "b"
    directories.make_directory(made)
    for one in (made, made.parent):
        assert one.stat().st_mode & 0o777 == directories.MODE
    directories.make_directory(made)


def test_a_file_in_its_place_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises((FileExistsError, NotADirectoryError)):
            directories.make_directory(path)


def test_files_that_vanish_while_they_are_looked_at_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("segment", "below/table", "gone/table"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    assert directories.size_bytes(tmp_path) == 15
    assert directories.size_bytes(tmp_path / "missing") == 0
    walk = os.walk

    def walked(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        """Another thread deletes a file and a folder right behind the first look."""
        for looked_at in walk(path):
            (tmp_path / "segment").unlink(missing_ok=True)
            shutil.rmtree(tmp_path / "gone", ignore_errors=True)
            yield looked_at

    monkeypatch.setattr(directories.os, "walk", walked)
    assert directories.size_bytes(tmp_path) == 5
