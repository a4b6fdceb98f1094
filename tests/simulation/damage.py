"""A medium that breaks what it had: one bit, where the log can tell.

What is synced and followed by a block that says so cannot be taken for the torn end of
the log. A start has to find it there, to say so, and to serve nothing.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ropeway.storage.file import catalog
from ropeway.storage.file.block import HEADER, decode
from ropeway.storage.file.index import HEADER as INDEX_HEADER
from ropeway.storage.file.segment import SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.machine import Machine

_LOG_ID = 6
"""Which field of a block's header has the log's id."""
_SEGMENT_BYTES = 7
"""Which field of an index's header says how long its segment is."""
SEALED = 0.8
"""How often it is not the journal that is damaged."""


class Damage:
    """One bit of a file that is not what it was."""

    def __init__(self, machine: Machine, path: Path, place: int, bit: int) -> None:
        self._machine = machine
        self._boots = machine.boots
        self.path = path
        self._place = place
        self._bit = bit
        self.is_found = False
        """Whether a start was refused for it."""
        self._turn()

    def __str__(self) -> str:
        return f"bit {self._bit} of byte {self._place} of {self.path.name}"

    @property
    def is_there(self) -> bool:
        """Whether the file is still the same: a power loss makes others."""
        return self._machine.boots == self._boots and self.path.exists()

    @property
    def is_in_journal(self) -> bool:
        """Whether no start can do without what is damaged."""
        return self.path.name == catalog.NAME

    @property
    def is_in_index(self) -> bool:
        """Whether it is made again from what else there is."""
        return self.path.suffix == ".index"

    def undo(self) -> None:
        """Have the file be as it was: somebody has restored it."""
        if self.is_there:
            self._turn()

    def _turn(self) -> None:
        with self.path.open("r+b", buffering=0) as file:
            file.seek(self._place)
            (old,) = file.read(1)
            file.seek(self._place)
            file.write(bytes([old ^ 1 << self._bit]))


def rot(machine: Machine, number: int) -> Damage | None:
    """Turn a bit of what has grown old: a sealed segment, its index, or the journal.

    Args:
        machine: Whose log it is; no process has it open.
        number: Which bit.

    Returns:
        What is damaged now; nothing where there is no log.
    """
    chance = random.Random(number)
    journals = [*machine.root.rglob(catalog.NAME)]
    indexes = sorted(machine.root.rglob("*.index"))
    if not journals:
        return None
    path, end = journals[0], _sure(journals[0])
    if indexes and chance.random() < SEALED:
        index = chance.choice(indexes)
        path, end = index, index.stat().st_size
        if chance.random() < 0.5:
            end = INDEX_HEADER.unpack_from(index.read_bytes())[_SEGMENT_BYTES]
            path = index.with_suffix(SUFFIX)
    return Damage(machine, path, chance.randrange(end), number % 8)


def _sure(journal: Path) -> int:
    """Up to where a journal of topics is what it was at the last start."""
    first, *others = journal.read_bytes().splitlines(keepends=True)
    header = catalog._parse(first.rstrip(b"\n"))
    assert isinstance(header, catalog.Header)
    return len(first) + sum(map(len, others[: header.lines - 1]))


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
