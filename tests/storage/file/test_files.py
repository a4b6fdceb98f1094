"""Open descriptors are bounded in number."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ropeway.storage.file.files import OpenFiles

if TYPE_CHECKING:
    from pathlib import Path


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_the_one_that_was_not_used_for_longest_is_closed(tmp_path: Path) -> None:
    files = OpenFiles(2)
    descriptors = []
    for name in "abc":
        (tmp_path / name).touch()
        descriptors.append(os.open(tmp_path / name, os.O_RDONLY))
    for name, descriptor in zip("ab", descriptors, strict=False):
        files.keep(tmp_path / name, descriptor)
    assert files.get(tmp_path / "a") == descriptors[0]
    files.keep(tmp_path / "c", descriptors[2])
    assert [is_open(one) for one in descriptors] == [True, False, True]
    assert files.get(tmp_path / "b") is None
    files.drop(tmp_path / "a")
    files.drop(tmp_path / "a")
    assert not is_open(descriptors[0])
    files.close()
    assert not is_open(descriptors[2])
    late = os.open(tmp_path / "a", os.O_RDONLY)
    files.keep(tmp_path / "a", late)
    assert not is_open(late)
