"""Cuts the power of a recorded workload at every sync, and looks at what is left.

Just before a sync most is at stake: what was not synced then may be lost in any subset,
"all of it" being the state after the sync before. So cuts before each sync, and at the
end, stand for those at any other moment.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from tests.power.disk import Disk, Event, load, read, write
from tests.power.recorded import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.power.disk import Image, Kind, Survives

    Check = Callable[[Path, list[str]], None]
    """Raises where what is in a directory breaks what the marks promise."""

SINGLE = 12
"""Of how many events that are not durable each is lost alone, and kept alone."""
TORN = 3
"""How many random subsets, with writes torn in sectors, each cut is tried with."""


class Broken(NamedTuple):
    """A power cut that broke a promise."""

    event: int
    how: str
    marks: int
    error: Exception


class Trace:
    """A recorded workload."""

    def __init__(self, directory: Path, *workloads: str) -> None:
        """Run workloads in a directory, one process after the other, and record them.

        Args:
            directory: What is there before counts as durable.
            workloads: `module:function`; each is given the directory.
        """
        directory.mkdir(exist_ok=True)
        self._begin = read(directory)
        self._inodes = {
            str(path.relative_to(directory)): path.stat().st_ino
            for path in directory.rglob("*")
        }
        self.directory = directory
        trace = directory.with_suffix(".trace")
        for workload in workloads:
            record(workload, directory, trace)
        self.events = list(load(trace.read_bytes()))
        disk = self.disk()
        for event in self.events:
            disk.apply(event)
        disk.assert_nothing_was_missed()

    def disk(self) -> Disk:
        """The disk before the first event."""
        return Disk.of(self.directory, self._begin, self._inodes)

    def sites(self) -> set[str]:
        """Who synced; where C code did, which files."""
        return {site_of(event) for event in self.events if event.op == "s"}


def site_of(event: Event) -> str:
    """Who called a sync; where it was C code, the end of the file's name."""
    return event.site or event.path.rpartition("/")[2]


def broken(
    trace: Trace, check: Check, scratch: Path, without: str | None = None, seed: int = 0
) -> Broken | None:
    """The first power cut that breaks a promise; None where none does.

    Args:
        trace: What was done, and promised.
        check: Opens what is left, and holds it against the promises.
        scratch: A directory that is made anew for each cut.
        without: A site whose syncs are taken to be missing. Cuts before the first of
            them leave what they leave with it, and are not looked at again.
        seed: Of the random subsets.
    """
    with _no_syncs():
        for one in states(trace, without, seed):
            event, how, image, marks = one
            try:
                write(image, scratch)
                check(scratch, marks)
            except Exception as error:  # noqa: BLE001 - whatever a broken disk leads to
                return Broken(event, how, len(marks), error)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return None


def states(
    trace: Trace, without: str | None = None, seed: int = 0
) -> Iterator[tuple[int, str, Image, list[str]]]:
    """What power cuts leave: the event before which, how, the files, the promises."""
    disk = trace.disk()
    marks: list[str] = []
    seen: set[int] = set()
    differs = without is None
    chance = random.Random(seed)
    last = len(trace.events)
    for number in count():
        event = trace.events[number] if number < last else None
        if differs and (event is None or event.op == "s"):
            for how, survives in _losses(disk.pending(), chance):
                image = disk.image(survives)
                key = hash((len(marks), *sorted(image.items(), key=lambda one: one[0])))
                if key not in seen:
                    seen.add(key)
                    yield number, how, image, marks
        if event is None:
            return
        if event.op == "!":
            marks.append(event.data.decode())
        if event.op == "s" and site_of(event) == without:
            differs = True
        else:
            disk.apply(event)


def _losses(
    pending: Sequence[int], chance: random.Random
) -> Iterator[tuple[str, Survives]]:
    """Ways to lose what is not durable."""
    yield "all is lost", lambda _kind, _number: False
    if not pending:
        return
    yield "nothing is lost", lambda _kind, _number: True
    yield "names are lost", lambda kind, _number: kind != "name"
    yield "only names are left", lambda kind, _number: kind == "name"
    yield "bytes are lost", lambda kind, _number: kind != "data"
    some = pending
    if len(pending) > SINGLE:
        some = [pending[0], pending[-1], *chance.sample(pending[1:-1], SINGLE - 2)]
    for one in some:
        yield f"only {one} is lost", lambda _kind, number, one=one: number != one
        yield f"only {one} is left", lambda _kind, number, one=one: number == one
    for _ in range(TORN):
        yield f"random {(seed := chance.random())}", torn(random.Random(seed))


def torn(chance: random.Random) -> Survives:
    """Whether a change survives, where each event does, does not, or does in part."""
    share: dict[int, float] = {}

    def survives(kind: Kind, number: int) -> bool:
        if number not in share:
            share[number] = chance.choice([0.0, 0.5, 1.0])
        if kind == "name":
            return share[number] > 0
        return chance.random() < share[number]

    return survives


@contextmanager
def _no_syncs() -> Iterator[None]:
    """Spare checks the wait for a real disk: no power is cut after them."""
    real = os.fsync, os.fdatasync
    os.fsync = os.fdatasync = lambda _descriptor: None  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync, os.fdatasync = real
