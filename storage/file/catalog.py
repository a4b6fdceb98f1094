r"""The file `partitions`: which topics there are, and where their offsets go on.

A line is the crc32 of the JSON behind it in 8 hexadecimal digits, a space, the JSON.
The first line is the log's header. Partitions are known to blocks and indexes by
ordinals, which are never given twice: a topic that is made again gets new ones.

A power cut may take any of the lines that were not synced, and leave those behind it.
So a line says up to where the file was synced when it was written, and the header how
many lines were there when the file was made, and was synced whole. Behind each sync
comes a line without offsets that says no more than that, so that also the last change
is known to have been synced.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from ropeway.common.reasons import reason_of
from ropeway.common.system import sync_data
from ropeway.common.versions import newer
from ropeway.storage.api import LogDamagedError, LogError, LogUnavailableError
from ropeway.storage.beginnings import refuse_other
from ropeway.storage.file.segment import keep_torn, write_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

_log = structlog.get_logger()

NAME = "partitions"
VERSION = 2
_WITHOUT_BEGINNINGS = 1
"""The version of a file in which all partitions begin at 0: older programs read it."""


class Header(Struct, tag="log", frozen=True):
    """The first line."""

    version: int
    log_id: int
    next_ordinal: int
    lines: int = 0
    """Lines that the file was made with, this one too; 0 in files of older programs."""


class Created(Struct, tag="create", frozen=True, omit_defaults=True):
    """Partitions of a topic, and their ordinals."""

    topic: str
    numbers: list[int]
    ordinals: list[int]
    begins: list[int] = []
    """The offset at which each begins; without it all begin at 0. From version 2 on."""
    durable: int = 0
    """So many bytes of the file were synced before this line was written."""


class Deleted(Struct, tag="delete", frozen=True, omit_defaults=True):
    """A topic that is gone."""

    topic: str
    durable: int = 0


class Floors(Struct, tag="floor", frozen=True, omit_defaults=True):
    """Offsets below which partitions have no record any more.

    Retention has dropped all that there were, and the offsets are their ends; a tier
    may have them still. Or they were trimmed, and nobody is to read them again.
    """

    ordinals: list[int]
    offsets: list[int]
    trimmed: bool = False
    durable: int = 0


class _Versioned(Struct):
    """What the first line has in every version."""

    version: int


Line = Created | Deleted | Floors

_SYNCED = Floors([], [])
"""What says of a sync, and changes nothing, also for older programs."""

_decode = msgspec.json.Decoder(Header | Line).decode
_encode = msgspec.json.Encoder().encode


class Catalog:
    """Topics, ordinals and floors; in memory, and in the file before it answers."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._header = header
        self._descriptor = -1
        self._size = 0
        self._changed = 0
        """Up to here the file has changes; behind it only what says that of a sync."""
        self._writing = threading.Lock()
        """Whoever syncs writes a line, too."""
        self.log_id = header.log_id
        self.next_ordinal = header.next_ordinal
        self.topics: dict[str, dict[int, int]] = {}
        """Topic to partition number to ordinal."""
        self.names: dict[int, tuple[str, int]] = {}
        """Ordinal to topic and partition number."""
        self.begins: dict[int, int] = {}
        """Offsets at which partitions begin, by ordinal, where it is not 0."""
        self.ends: dict[int, int] = {}
        """Of partitions whose records retention has dropped, all of them."""
        self.trimmed: dict[int, int] = {}
        """Up to where partitions were trimmed."""
        self._durable = 0
        """So many bytes of the file are synced."""
        self.torn = b""
        """What was read behind its end, and counts no more."""

    def create(
        self,
        topic: str,
        numbers: Collection[int],
        begins: Mapping[int, int] | None = None,
    ) -> None:
        """Give ordinals to partitions that have none.

        Args:
            topic: Its name.
            numbers: Of the partitions.
            begins: At which offset partitions begin, by number.

        Raises:
            BeginsElsewhereError: One is there, and begins at another.
            LogUnavailableError: The line could not be written.
        """
        begins, known = begins or {}, self.topics.get(topic, {})
        for number in begins.keys() & known.keys():
            begin = self.begins.get(known[number], 0)
            refuse_other(topic, number, begin, begins[number])
        new = sorted(number for number in set(numbers) if number not in known)
        if not new:
            return
        ordinals = list(range(self.next_ordinal, self.next_ordinal + len(new)))
        offsets = [begins.get(number, 0) for number in new]
        if any(offsets) and self._header.version < VERSION:
            self._write_header(VERSION)
        line = Created(topic, new, ordinals, offsets if any(offsets) else [])
        self._append(line)
        self._apply(line)

    def delete(self, topic: str) -> None:
        """Forget a topic.

        Raises:
            LogUnavailableError: The line could not be written.
        """
        self._append(Deleted(topic))
        self._apply(Deleted(topic))

    def set_ends(self, ends: dict[int, int]) -> None:
        """Keep the ends of partitions that are about to have no record left."""
        line = Floors(list(ends), list(ends.values()))
        self._append(line)
        self._apply(line)

    def trim(self, floors: dict[int, int]) -> None:
        """Keep below which offsets nobody reads partitions from now on."""
        line = Floors(list(floors), list(floors.values()), trimmed=True)
        self._append(line)
        self._apply(line)

    def sync(self) -> None:
        """Make all lines so far durable. Any thread may call it.

        Raises:
            OSError: The disk did not take them.
        """
        size = self._changed  # a line may be added meanwhile
        if self._durable < size:
            sync_data(self._descriptor)
            self._durable = max(self._durable, size)
            with contextlib.suppress(OSError):
                self._write(_SYNCED)

    def close(self) -> None:
        """Give up the file."""
        os.close(self._descriptor)

    def _append(self, line: Line) -> None:
        try:
            self._changed = self._write(line)
        except OSError as error:
            raise self._not_written(error) from error

    def _write_header(self, version: int) -> None:
        """Write the first line over, as another version; a file that is synced later.

        It is as long as before, and shorter than a sector, which a disk writes whole.
        """
        before, self._header = self._header, replace(self._header, version=version)
        data = _dump(self._header)
        assert len(data) == len(_dump(before))
        try:
            os.pwrite(self._descriptor, data, 0)
        except OSError as error:
            self._header = before
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> LogUnavailableError:
        return LogUnavailableError(
            f"cannot write {self.path}: {reason_of(error)}; nothing was changed"
        )

    def _write(self, line: Line) -> int:
        """Add a line, or leave the file as it was; where it ends then."""
        with self._writing:
            data = _dump(replace(line, durable=self._durable))
            place = self._size
            try:
                written = os.pwrite(self._descriptor, data, place)
                if written != len(data):
                    os.pwrite(self._descriptor, data[written:], place + written)
            except OSError:
                os.ftruncate(self._descriptor, place)
                raise
            self._size += len(data)
            return self._size

    def _apply(self, line: Struct) -> None:
        match line:
            case Created(topic, numbers, ordinals, begins):
                pairs = zip(numbers, ordinals, strict=True)
                self.topics.setdefault(topic, {}).update(pairs)
                for number, ordinal in zip(numbers, ordinals, strict=True):
                    self.names[ordinal] = topic, number
                for ordinal, begin in zip(ordinals, begins, strict=False):
                    if begin:
                        self.begins[ordinal] = self.ends[ordinal] = begin
                self.next_ordinal = max(self.next_ordinal, *(o + 1 for o in ordinals))
            case Deleted(topic):
                for ordinal in self.topics.pop(topic, {}).values():
                    self.begins.pop(ordinal, None)
                    self.ends.pop(ordinal, None)
                    self.trimmed.pop(ordinal, None)
                    del self.names[ordinal]
            case Floors(ordinals, offsets, trimmed):
                known = self.trimmed if trimmed else self.ends
                known.update(zip(ordinals, offsets, strict=True))

    def _lines(self) -> Iterable[Line]:
        for topic, ordinals in self.topics.items():
            begins = [self.begins.get(ordinal, 0) for ordinal in ordinals.values()]
            yield Created(
                topic,
                list(ordinals),
                list(ordinals.values()),
                begins if any(begins) else [],
            )
        live = {o for topic in self.topics.values() for o in topic.values()}
        for known, trimmed in ((self.ends, False), (self.trimmed, True)):
            floors = {o: at for o, at in known.items() if o in live}
            if floors:
                yield Floors(list(floors), list(floors.values()), trimmed)

    def rewrite(self) -> None:
        """Write the file anew, without what no longer counts, and open it."""
        lines = [_dump(line) for line in self._lines()]
        version = VERSION if self.begins else _WITHOUT_BEGINNINGS
        header = Header(version, self.log_id, self.next_ordinal, len(lines) + 1)
        write_file(self.path, [_dump(header), *lines])
        self._header = header
        before, self._descriptor = self._descriptor, os.open(self.path, os.O_RDWR)
        if before >= 0:
            os.close(before)
        size = os.fstat(self._descriptor).st_size
        self._size = self._changed = self._durable = size


def open_catalog(directory: Path, new_log_id: int, *, skip: bool) -> Catalog:
    """Read the file, or make it where there is none yet.

    Args:
        directory: The log's directory.
        new_log_id: The id that a new log gets.
        skip: Go on without lines that are damaged.

    Raises:
        LogDamagedError: A line that was synced is not what was written.
        LogError: A newer program made it.
    """
    path = directory / NAME
    catalog = load(path, skip=skip) or Catalog(path, Header(VERSION, new_log_id, 0))
    if catalog.torn:
        kept = keep_torn(path, catalog.torn)
        _log.warning("journal was torn", path=str(path), kept=str(kept))
    catalog.rewrite()
    return catalog


def load(path: Path, *, skip: bool) -> Catalog | None:
    """Read the file without touching it; None where there is none."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    torn = lines.pop()
    first = lines[0] if lines else torn
    header = _parse(first)
    if header is None:
        _refuse_newer(path, first)
    if not isinstance(header, Header):
        raise LogDamagedError(
            f"{path}, line 1: not the header of a log; "
            "it names the log's id, without which no block can be read: restore it"
        )
    if header.version > VERSION:
        raise LogError(newer(path, header.version, VERSION))
    catalog = Catalog(path, header)
    catalog.torn = torn
    found = [_parse(data) for data in lines]
    place = len(first) + 1
    for number, line in enumerate(found[1:], 2):
        if line is not None:
            catalog._apply(line)  # noqa: SLF001 - its own file
        elif not skip:
            if _is_torn(header, number, place, found[number:]):
                catalog.torn = b"\n".join([*lines[number - 1 :], torn])
                break
            raise LogDamagedError(
                f"{path}, line {number}: the checksum is wrong; open with "
                'on_damage="skip" to go on without it'
            )
        place += len(lines[number - 1]) + 1
    if len(lines) < header.lines and not skip:
        raise LogDamagedError(
            f"{path}, line {len(lines) + 1}: it had {header.lines} lines at the last "
            'start; open with on_damage="skip" to go on without the rest'
        )
    return catalog


def _is_torn(
    header: Header, number: int, place: int, later: list[Header | Line | None]
) -> bool:
    """Whether nothing shows that a damaged line had been synced.

    Args:
        header: The first line.
        number: The damaged line's, from 1.
        place: Where it begins.
        later: The lines behind it.
    """
    if number <= header.lines:
        return False  # it was there at the last start, and synced
    if not later:
        return True
    if not header.lines:
        return False  # files of older programs do not tell
    known = (one for one in later if isinstance(one, Line))
    return all(one.durable <= place for one in known)


def _refuse_newer(path: Path, first: bytes) -> None:
    """Tell a header that says other things, of a newer format, from a damaged one."""
    if first[:9] == b"%08x " % crc32(first[9:]):
        with contextlib.suppress(msgspec.DecodeError):
            found = msgspec.json.decode(first[9:], type=_Versioned).version
            if found > VERSION:
                raise LogError(newer(path, found, VERSION))


def _dump(line: Struct) -> bytes:
    data = _encode(line)
    return b"%08x %s\n" % (crc32(data), data)


def _parse(data: bytes) -> Header | Line | None:
    if data[:9] != b"%08x " % crc32(data[9:]):
        return None
    try:
        line: Header | Line = _decode(data[9:])
    except msgspec.DecodeError:
        return None
    return line
