"""Directories are made for their owner; `tests/power` cuts the power behind them."""

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
