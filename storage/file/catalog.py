r"""The file `partitions`: which topics there are, and where their offsets go on.

A line is the crc32 of the JSON behind it in 8 hexadecimal digits, a space, the JSON.
The first line is the log's header. Partitions are known to blocks and indexes by
ordinals, which are never given twice: a topic that is made again gets new ones.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
from msgspec import Struct

from ropeway.storage.api import LogDamagedError, LogError, LogUnavailableError
from ropeway.storage.file.segment import write_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

NAME = "partitions"
VERSION = 1


class Header(Struct, tag="log", frozen=True):
    """The first line."""

    version: int
    log_id: int
    next_ordinal: int


class Created(Struct, tag="create", frozen=True):
    """Partitions of a topic, and their ordinals."""

    topic: str
    numbers: list[int]
    ordinals: list[int]


class Deleted(Struct, tag="delete", frozen=True):
    """A topic that is gone."""

    topic: str


class Floors(Struct, tag="floor", frozen=True):
    """Ends of partitions whose records retention has dropped, all of them."""

    ordinals: list[int]
    offsets: list[int]


_decode = msgspec.json.Decoder(Header | Created | Deleted | Floors).decode
_encode = msgspec.json.Encoder().encode


class Catalog:
    """Topics, ordinals and floors; in memory, and in the file before it answers."""

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        self._descriptor = -1
        self._size = 0
        self.log_id = header.log_id
        self.next_ordinal = header.next_ordinal
        self.topics: dict[str, dict[int, int]] = {}
        """Topic to partition number to ordinal."""
        self.names: dict[int, tuple[str, int]] = {}
        """Ordinal to topic and partition number."""
        self.floors: dict[int, int] = {}
        self.dirty = False
        """Whether lines were written that are not synced yet."""

    def create(self, topic: str, numbers: Collection[int]) -> None:
        """Give ordinals to partitions that have none.

        Raises:
            LogUnavailableError: The line could not be written.
        """
        known = self.topics.get(topic, {})
        new = sorted(number for number in set(numbers) if number not in known)
        if not new:
            return
        ordinals = list(range(self.next_ordinal, self.next_ordinal + len(new)))
        line = Created(topic, new, ordinals)
        self._append(line)
        self._apply(line)

    def delete(self, topic: str) -> None:
        """Forget a topic.

        Raises:
            LogUnavailableError: The line could not be written.
        """
        self._append(Deleted(topic))
        self._apply(Deleted(topic))

    def set_floors(self, floors: dict[int, int]) -> None:
        """Keep the ends of partitions that are about to have no record left."""
        line = Floors(list(floors), list(floors.values()))
        self._append(line)
        self._apply(line)

    def sync(self) -> None:
        """Make all lines so far durable. Any thread may call it.

        Raises:
            OSError: The disk did not take them.
        """
        if self.dirty:
            self.dirty = False  # first, for a line may be added meanwhile
            try:
                os.fdatasync(self._descriptor)
            except OSError:
                self.dirty = True
                raise

    def close(self) -> None:
        """Give up the file."""
        os.close(self._descriptor)

    def _append(self, line: Struct) -> None:
        data = _dump(line)
        try:
            written = os.pwrite(self._descriptor, data, self._size)
            if written != len(data):
                written += os.pwrite(
                    self._descriptor, data[written:], self._size + written
                )
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)
            raise LogUnavailableError(
                f"cannot write {self._path}: {error.strerror}; nothing was changed"
            ) from error
        self._size += len(data)
        self.dirty = True

    def _apply(self, line: Struct) -> None:
        match line:
            case Created(topic, numbers, ordinals):
                pairs = zip(numbers, ordinals, strict=True)
                self.topics.setdefault(topic, {}).update(pairs)
                for number, ordinal in zip(numbers, ordinals, strict=True):
                    self.names[ordinal] = topic, number
                self.next_ordinal = max(self.next_ordinal, *(o + 1 for o in ordinals))
            case Deleted(topic):
                for ordinal in self.topics.pop(topic, {}).values():
                    self.floors.pop(ordinal, None)
                    del self.names[ordinal]
            case Floors(ordinals, offsets):
                self.floors.update(zip(ordinals, offsets, strict=True))

    def _lines(self) -> Iterable[Struct]:
        yield Header(VERSION, self.log_id, self.next_ordinal)
        for topic, ordinals in self.topics.items():
            yield Created(topic, list(ordinals), list(ordinals.values()))
        live = {o for topic in self.topics.values() for o in topic.values()}
        floors = {o: at for o, at in self.floors.items() if o in live}
        if floors:
            yield Floors(list(floors), list(floors.values()))

    def rewrite(self) -> None:
        """Write the file anew, without what no longer counts, and open it."""
        write_file(self._path, [_dump(line) for line in self._lines()])
        self._descriptor = os.open(self._path, os.O_RDWR)
        self._size = os.fstat(self._descriptor).st_size


def open_catalog(directory: Path, new_log_id: int, *, skip: bool) -> Catalog:
    """Read the file, or make it where there is none yet.

    Args:
        directory: The log's directory.
        new_log_id: The id that a new log gets.
        skip: Go on without lines that are damaged.

    Raises:
        LogDamagedError: A line before the last is not what was written.
        LogError: A newer program made it.
    """
    path = directory / NAME
    catalog = load(path, skip=skip) or Catalog(path, Header(VERSION, new_log_id, 0))
    catalog.rewrite()
    return catalog


def load(path: Path, *, skip: bool) -> Catalog | None:
    """Read the file without touching it; None where there is none."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    torn = lines.pop()
    header = _parse(lines[0]) if lines else _parse(torn)
    if not isinstance(header, Header):
        raise LogDamagedError(
            f"{path}, line 1: not the header of a log; "
            "it names the log's id, without which no block can be read: restore it"
        )
    if header.version > VERSION:
        raise LogError(
            f"{path} has format {header.version}; "
            f"this program reads up to {VERSION}: use a newer one"
        )
    catalog = Catalog(path, header)
    for number, data in enumerate(lines[1:], 2):
        line = _parse(data)
        if line is not None:
            catalog._apply(line)  # noqa: SLF001 - its own file
        elif number < len(lines) and not skip:
            raise LogDamagedError(
                f"{path}, line {number}: the checksum is wrong; open with "
                'on_damage="skip" to go on without it'
            )
    return catalog


def _dump(line: Struct) -> bytes:
    data = _encode(line)
    return b"%08x %s\n" % (crc32(data), data)


def _parse(data: bytes) -> Header | Created | Deleted | Floors | None:
    if data[:9] != b"%08x " % crc32(data[9:]):
        return None
    try:
        line: Header | Created | Deleted | Floors = _decode(data[9:])
    except msgspec.DecodeError:
        return None
    return line
