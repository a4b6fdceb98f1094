"""Runs a node that counts what it asks Pulsar, and how long its loop is ever held up.

    $ python benchmarks/counted.py COUNTS -m ropeway.gateway.cli.main serve ...

COUNTS is a file of four numbers of 8 bytes: requests to the admin REST, frames of the
binary protocol that were sent, the most microseconds of CPU that the event loop spent
between two looks at the clock, and whether to look every 5 ms; else it is every second.
"""

from __future__ import annotations

import mmap
import runpy
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LAYOUT = struct.Struct("=4q")
REST_S = 1.0


class Counts(NamedTuple):
    """What a node has counted."""

    rest: int
    frames: int
    longest_us: int
    looks: int = 0


def read(path: Path) -> Counts:
    """What stands in a file of counts now."""
    return Counts(*LAYOUT.unpack(path.read_bytes()))


def clear(path: Path, *, looks: bool) -> None:
    """Begin anew; the file is made where it is not there."""
    path.touch()
    with path.open("r+b") as file:
        file.write(LAYOUT.pack(0, 0, 0, looks))


def counting(path: Path) -> None:
    """Have this process count from now on."""
    from benchmarks import held  # noqa: PLC0415 - not for who only reads counts
    from ropeway.storage.pulsar.connection import Connection  # noqa: PLC0415
    from ropeway.storage.pulsar.rest import Rest  # noqa: PLC0415

    with path.open("r+b") as file:
        fields = memoryview(mmap.mmap(file.fileno(), LAYOUT.size)).cast("q")

    def count(kind: type[Any], name: str, at: int) -> None:
        plain: Callable[..., Any] = getattr(kind, name)

        def counted(*arguments: Any) -> Any:
            fields[at] += 1
            return plain(*arguments)

        setattr(kind, name, counted)

    count(Rest, "_exchange", 0)
    count(Connection, "write", 1)

    def looked(held_s: float) -> None:
        if fields[3]:
            fields[2] = max(fields[2], int(held_s * 1e6))

    def wait_s() -> float:
        return held.LOOK_S if fields[3] else REST_S

    held.at_start(lambda: held.look(wait_s, looked))


if __name__ == "__main__":
    _, where, _, module, *rest = sys.argv
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    counting(Path(where))
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
