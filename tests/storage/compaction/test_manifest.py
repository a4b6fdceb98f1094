"""The manifest: what comes back, and what is not believed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.compaction.manifest import Manifest, dump, load

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = Manifest("orders", 3, 100, 7, ("00000000000000000005-7",))


def test_what_was_dumped_is_loaded_and_none_where_there_is_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "manifest"
    assert load(path) is None
    path.write_bytes(dump(MANIFEST))
    assert load(path) == MANIFEST


def test_no_cut_but_of_the_line_end_passes(tmp_path: Path) -> None:
    path = tmp_path / "manifest"
    data = dump(MANIFEST)
    for cut in range(len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(LogDamagedError, match="not what was written; restore it"):
            load(path)


def test_a_newer_format_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "manifest"
    data = b'{"version":3,"what":"ever"}'
    path.write_bytes(b"%08x %s\n" % (crc32(data), data))
    with pytest.raises(LogError, match="format 3; this program reads up to 2"):
        load(path)
