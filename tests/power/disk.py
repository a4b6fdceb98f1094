"""A disk whose power can be cut: what a recorded process left on it, at any moment.

Changes are durable after a sync of their file or directory. Of all others any subset
may be there: bytes in sectors of 512, sizes, and names, each without the others. Bytes
that got lost are those from before, or zeros. A rename is there or not, but whole.

Not modelled: a medium that breaks what it had, sectors that are torn within, old bytes
of other files in place of zeros, syncs that lie, hard links, renames of directories.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SECTOR = 512
UNRECORDED = ("-shm", "/LOG", "/lock", "/LOCK")
"""Ends of files that nobody relies on after a power cut."""

Kind = Literal["name", "size", "data"]
Survives = Callable[[Kind, int], bool]
"""Whether a change that was not synced is there: its kind, its event's number."""
Image = dict[str, bytes | None]
"""What is on a disk: paths with their bytes; None for a directory."""


class Event(NamedTuple):
    """What the recorder saw; see `recorder.c`."""

    op: str
    site: str
    path: str
    other: str
    data: bytes
    inode: int
    number: int


_HEAD = Struct("<cIIIIQq")


def load(trace: bytes) -> Iterator[Event]:
    """The events of a trace."""
    at = 0
    while at < len(trace):
        op, site, path, other, data, inode, number = _HEAD.unpack_from(trace, at)
        at += _HEAD.size
        parts = []
        for size in (site, path, other, data):
            parts.append(trace[at : at + size])
            at += size
        texts = [part.decode() for part in parts[:3]]
        yield Event(op.decode(), *texts, parts[3], inode, number)


class File:
    """A file: its durable bytes, and changes since then."""

    def __init__(self, data: bytes = b"") -> None:
        self.durable = data
        self.pending: list[tuple[int, int | None, bytes, int]] = []
        """Event, offset or None, bytes, size; a size below 0 is one to grow to."""

    def write(self, number: int, offset: int, data: bytes) -> None:
        """Change bytes, sector by sector, and the size."""
        at = 0
        while at < len(data):
            size = SECTOR - (offset + at) % SECTOR
            piece = data[at : at + size]
            self.pending.append((number, offset + at, piece, 0))
            at += size
        self.resize(number, -offset - len(data))

    def resize(self, number: int, size: int) -> None:
        """Cut to a size; where it is negative, grow to it."""
        self.pending.append((number, None, b"", size))

    def sync(self, to: int) -> None:
        """Make durable what events until a number have changed."""
        later = [one for one in self.pending if one[0] > to]
        self.pending = [one for one in self.pending if one[0] <= to]
        self.durable = self.content(_everything)
        self.pending = later

    def content(self, survives: Survives) -> bytes:
        """The bytes with those changes that are there."""
        found = bytearray(self.durable)
        for number, offset, data, size in self.pending:
            if not survives("size" if offset is None else "data", number):
                continue
            if offset is None:
                if size >= 0:
                    del found[size:]
                found += bytes(max(abs(size) - len(found), 0))
            else:
                found += bytes(max(offset - len(found), 0))
                found[offset : offset + len(data)] = data
        return bytes(found)


class Directory:
    """A directory: its durable names, and changes since then."""

    def __init__(self) -> None:
        self.durable: dict[str, File | Directory] = {}
        self.pending: list[tuple[int, str, str, File | Directory | None]] = []
        """Event, name that goes, name that comes, what that is."""

    def change(
        self,
        number: int,
        goes: str,
        comes: str = "",
        what: File | Directory | None = None,
    ) -> None:
        """Take a name away, give one, or both at once."""
        self.pending.append((number, goes, comes, what))

    def sync(self, to: int) -> None:
        """Make durable what events until a number have changed."""
        later = [one for one in self.pending if one[0] > to]
        self.pending = [one for one in self.pending if one[0] <= to]
        self.durable = self.entries(_everything)
        self.pending = later

    def entries(self, survives: Survives) -> dict[str, File | Directory]:
        """The names with those changes that are there."""
        found = dict(self.durable)
        for number, goes, comes, what in self.pending:
            if survives("name", number):
                found.pop(goes, None)
                if what is not None:
                    found[comes] = what
        return found


def _everything(kind: Kind, number: int) -> bool:
    del kind, number
    return True


class Disk:
    """A directory and what is below it, as events change it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top = Directory()
        self._files: dict[int, File] = {}
        self.number = 0
        """How many events there were."""

    @classmethod
    def of(cls, root: Path, image: Image, inodes: dict[str, int]) -> Disk:
        """A disk with files on it, all of them durable."""
        disk = cls(root)
        for path, data in sorted(image.items()):
            parent, name = disk._place(str(root / path))
            if data is None:
                parent.durable[name] = Directory()
            else:
                file = parent.durable[name] = File(data)
                disk._files[inodes[path]] = file
        return disk

    def _place(self, path: str) -> tuple[Directory, str]:
        *parents, name = Path(path).relative_to(self._root).parts
        return self._directory(parents), name

    def _directory(self, names: Sequence[str]) -> Directory:
        found = self._top
        for name in names:
            below = found.entries(_everything)[name]
            assert isinstance(below, Directory)
            found = below
        return found

    def apply(self, event: Event) -> None:
        """Change what an event changes."""
        self.number += 1
        number = self.number
        match event.op:
            case "c":
                directory, name = self._place(event.path)
                file = self._files[event.inode] = File()
                directory.change(number, "", name, file)
            case "m":
                directory, name = self._place(event.path)
                directory.change(number, "", name, Directory())
            case "u":
                directory, name = self._place(event.path)
                directory.change(number, name)
            case "r":
                directory, old = self._place(event.path)
                target, new = self._place(event.other)
                assert target is directory, "between directories: not modelled"
                what = directory.entries(_everything)[old]
                assert isinstance(what, File), "of a directory: not modelled"
                directory.change(number, old, new, what)
            case "w":
                self._files[event.inode].write(number, event.number, event.data)
            case "t":
                self._files[event.inode].resize(number, event.number)
            case "a":
                self._files[event.inode].resize(number, -event.number)
            case "s":
                self._sync(event)
            case _:
                assert event.op == "!", f"{event.op}: not modelled"

    def _sync(self, event: Event) -> None:
        # One that says no number ended as soon as it had begun.
        to = event.number or self.number
        if event.inode in self._files:
            self._files[event.inode].sync(to)
        else:
            self._directory(Path(event.path).relative_to(self._root).parts).sync(to)

    def pending(self) -> list[int]:
        """The events of which something is not durable."""
        found: set[int] = set()
        for one in self._walk():
            found.update(change[0] for change in one.pending)
        return sorted(found)

    def _walk(self) -> Iterator[File | Directory]:
        waiting: list[File | Directory] = [self._top]
        while waiting:
            one = waiting.pop()
            yield one
            if isinstance(one, Directory):
                waiting += one.entries(_everything).values()

    def image(self, survives: Survives) -> Image:
        """What a power cut now leaves."""
        found: Image = {}
        waiting = [("", self._top)]
        while waiting:
            at, directory = waiting.pop()
            for name, what in directory.entries(survives).items():
                path = f"{at}/{name}".lstrip("/")
                if isinstance(what, Directory):
                    found[path] = None
                    waiting.append((path, what))
                else:
                    found[path] = what.content(survives)
        return found

    def assert_nothing_was_missed(self) -> None:
        """Hold what was recorded against the real directory."""
        recorded, real = self.image(_everything), read(self._root)
        for path in recorded.keys() | real.keys():
            if not f"/{path}".endswith(UNRECORDED):
                assert path in recorded, f"{path} came to be unseen"
                assert path in real, f"{path} went unseen"
                assert recorded[path] == real[path], f"{path} was changed unseen"


def read(directory: Path) -> Image:
    """What is in a directory."""
    return {
        str(path.relative_to(directory)): None if path.is_dir() else path.read_bytes()
        for path in directory.rglob("*")
    }


def write(image: Image, directory: Path) -> None:
    """Make real files of what a power cut left."""
    directory.mkdir()
    for path, data in image.items():
        target = directory / path
        made = target if data is None else target.parent
        made.mkdir(parents=True, exist_ok=True)
        if data is not None:
            target.write_bytes(data)
