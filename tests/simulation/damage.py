"""A medium that breaks what it had: one bit, where the log can tell.

What is synced and followed by a block that says so cannot be taken for the torn end of
the log. A start has to find it there, to say so, and to serve nothing.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ropeway.storage.file.block import HEADER, decode
from ropeway.storage.file.segment import SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.machine import Machine

_LOG_ID = 6
"""Which field of a block's header has the log's id."""


class Damage:
    """One bit of a file that is not what it was."""

    def __init__(self, machine: Machine, path: Path, place: int, bit: int) -> None:
        self._machine = machine
        self._boots = machine.boots
        self._path = path
        self._place = place
        self._bit = bit
        self.is_found = False
        """Whether a start was refused for it."""
        self._turn()

    def __str__(self) -> str:
        return f"bit {self._bit} of byte {self._place} of {self._path.name}"

    @property
    def is_there(self) -> bool:
        """Whether the file is still the same: a power loss makes others."""
        return self._machine.boots == self._boots and self._path.exists()

    def undo(self) -> None:
        """Have the file be as it was: somebody has restored it."""
        if self.is_there:
            self._turn()

    def _turn(self) -> None:
        with self._path.open("r+b", buffering=0) as file:
            file.seek(self._place)
            (old,) = file.read(1)
            file.seek(self._place)
            file.write(bytes([old ^ 1 << self._bit]))


def flip(machine: Machine, number: int) -> Damage | None:
    """Turn a bit of the segment that grows, before what it says is synced.

    Args:
        machine: Whose log it is; no process has it open.
        number: Which bit.

    Returns:
        What is damaged now; nothing where no bit is sure to be missed.
    """
    for path in sorted(machine.root.rglob(f"*{SUFFIX}"), reverse=True):
        if path.with_suffix(".index").exists():
            break
        if synced := _synced(path):
            place = random.Random(number).randrange(synced)
            return Damage(machine, path, place, number % 8)
    return None


def _synced(path: Path) -> int:
    """Up to which place of a segment its own blocks say that it was synced."""
    base, data = int(path.stem), memoryview(path.read_bytes())
    place = synced = 0
    while len(data) > place + HEADER.size:
        log_id = HEADER.unpack_from(data, place)[_LOG_ID]
        block = decode(data, place, base, log_id)
        if block is None:
            break
        synced = max(synced, block.durable - base)
        place += block.length
    return max(min(synced, place), 0)
