"""Live directories are copied though files vanish from them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.copies import killed_copy

if TYPE_CHECKING:
    from pathlib import Path


def test_what_vanishes_while_it_is_copied_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    live = tmp_path / "live"
    (live / "below").mkdir(parents=True)
    (live / "below").chmod(0o700)
    for name in ("kept", "gone", "below/kept"):
        (live / name).write_text(name)
    copy2 = shutil.copy2

    def late(source: str, target: Path) -> None:
        (live / "gone").unlink(missing_ok=True)
        copy2(source, target)

    monkeypatch.setattr(shutil, "copy2", late)
    killed_copy(live, tmp_path / "copy")
    found = {
        str(path.relative_to(tmp_path / "copy")): path.read_text()
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file()
    }
    assert found == {"kept": "kept", "below/kept": "below/kept"}
    assert (tmp_path / "copy" / "below").stat().st_mode & 0o777 == 0o700


def test_a_copy_that_is_there_already_is_an_error(tmp_path: Path):
    (tmp_path / "live").mkdir()
    (tmp_path / "copy").mkdir()
    with pytest.raises(FileExistsError):
        killed_copy(tmp_path / "live", tmp_path / "copy")
