"""A small sample of each format: how it is made, and what it must say for ever.

`make.py` keeps samples as files, once for a version of a format; `test_formats.py`
reads each with the code as it is now. A `check` may only grow weaker by a migration
that `docs/architecture/formats.md` tells of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropeway.storage.api import LogDamagedError
from ropeway.storage.file import FileLogSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVER = FileLogSettings(segment_bytes=1 << 16, retention_ms=None)
LONG = "x" * 40_000
"""Two of them fill a segment."""
NOON_MS = 1_800_000_000_000


@dataclass(frozen=True)
class Sample:
    """A format, with a sample of it."""

    name: str
    version: int
    make: Callable[[Path], None]
    """Make it in an empty directory."""
    check: Callable[[Path], None]
    """Hold what is in a directory against what was made; it may change the files."""


SAMPLES: list[Sample] = []


def sample(name: str, version: int, check: Callable[[Path], None]) -> Any:
    """Have a function be what makes a sample."""

    def noted(make: Callable[[Path], None]) -> Callable[[Path], None]:
        SAMPLES.append(Sample(name, version, make, check))
        return make

    return noted


def refuse(problems: list[str]) -> None:
    if problems:
        raise LogDamagedError(problems[0])
