"""Copies of directories that somebody still writes to, as a kill would leave them."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


def killed_copy(live: Path, copy: Path) -> None:
    """Make a directory be what a kill would leave of one that is in use.

    Files that are deleted meanwhile, as logs and stores do by themselves, are not in
    it: `shutil.copytree` raises an error for each of them.
    """
    for where, _, names in os.walk(live):
        there = copy / os.path.relpath(where, live)
        there.mkdir(parents=True, exist_ok=where != os.fspath(live))
        with suppress(FileNotFoundError):
            shutil.copymode(where, there)
        for name in names:
            with suppress(FileNotFoundError):
                shutil.copy2(Path(where, name), there / name)
