"""A machine: its files, and the disk below them, over all processes that run there."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from tests.power import disk as power
from tests.power.cuts import torn
from tests.simulation.unsynced import Unsynced

if TYPE_CHECKING:
    import random
    from pathlib import Path

SQLITE = (".db", ".db-wal", ".db-shm", ".db-journal")
"""Ends of SQLite's files, which are not seen: what was committed is kept."""


class Machine:
    """The disk of one machine, over all processes that run there.

    Args:
        scratch: A real directory that is the machine's alone.
        chance: How long calls take, and what a power loss takes.
    """

    def __init__(self, name: str, scratch: Path, chance: random.Random) -> None:
        self.name = name
        self.chance = chance
        self._scratch = scratch
        self._generation = 0
        self.root = scratch / "0"
        self.root.mkdir(parents=True)
        self.disk = power.Disk(self.root)
        self.front = f"{self.root}/"
        self.stores: dict[str, Any] = {}
        """What RocksDB keeps, by directory below the root; see `rocks`."""
        self.unsynced = Unsynced()
        self.boots = 1
        self.full = False
        self.failing = False
        """Whether syncs fail."""
        self.slow = False
        self.is_off = False

    def lose_power(self) -> str:
        """Lose what was not synced, but for any part of it that the rules allow.

        Returns:
            What was kept, for the timeline.
        """
        kind = self.chance.choice(["all lost", "torn", "torn", "torn", "nothing lost"])
        survives: power.Survives = {
            "all lost": lambda _kind, _number: False,
            "nothing lost": lambda _kind, _number: True,
            "torn": torn(self.chance),
        }[kind]
        image = self.disk.image(survives)
        old, self._generation = self.root, self._generation + 1
        self.root = self._scratch / str(self._generation)
        self.front = f"{self.root}/"
        for path in list(image):
            if path.endswith(SQLITE):
                del image[path]
        power.write(image, self.root)
        for one in sorted(old.rglob("*")):
            if one.name.endswith(SQLITE):
                target = self.root / one.relative_to(old)
                if target.parent.is_dir():
                    shutil.copyfile(one, target)
        shutil.rmtree(old)
        inodes = {
            str(path.relative_to(self.root)): path.stat().st_ino
            for path in self.root.rglob("*")
        }
        self.disk = power.Disk.of(self.root, power.read(self.root), inodes)
        self.unsynced = Unsynced()
        self.boots += 1
        return kind
