"""What every JVM that a test starts is told, so that it leaves no file behind."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def options() -> list[str]:
    """Options of any JVM.

    It does not look at TMPDIR. Libraries unpack themselves into its folder, and
    certificates are made there; one that is killed leaves them.
    """
    return [f"-Djava.io.tmpdir={tempfile.gettempdir()}", "-XX:-UsePerfData"]


def command(arguments: Sequence[str]) -> list[str]:
    """A command line as it is, or with these options where it starts a JVM.

    What comes before `java`, such as what mounts a disk for it, stays as it is.
    """
    at = list(arguments).index("java") + 1 if "java" in arguments else 0
    return [*arguments[:at], *(options() if at else []), *arguments[at:]]
