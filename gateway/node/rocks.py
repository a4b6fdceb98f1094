"""What is kept in RocksDB, and can be made again from the log.

The only file that knows RocksDB. Its calls may wait for the disk: a thread makes them.

RocksDB's own log is not synced, and where a power cut took a part from its middle, what
follows is applied all the same. So a store that was open when the machine went down is
made anew; one whose process was killed is as good as before.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, ClassVar, Self, cast

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from ropeway.common.system import boot_id
from ropeway.storage import private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Batch = WriteBatch
"""Changes that are written together."""

_OPEN_FILES = 64
_INFO_LOGS = 2
_END = b"\xff"
_OPEN = "OPEN"
"""A file that is there while a process has the store open; it names the boot."""


def _was_open_at_shutdown(directory: Path) -> bool:
    """Whether a store was open when the machine went down, in order or not."""
    try:
        return (directory / _OPEN).read_bytes() != boot_id().encode()
    except OSError:
        return False


class Rocks:
    """Keys and values in a directory, sorted; one process, one thread at a time.

    Args:
        directory: Made where it is missing.
    """

    MEMORY_BYTES: ClassVar = 16 << 20
    """Of blocks that were read, and as much of what is not written yet."""
    BLOOM_BITS: ClassVar = 0
    """A key, in filters that spare looking where a key is not; 0 for no filters."""

    def __init__(self, directory: Path) -> None:
        private.directory(directory)
        self._open = directory / _OPEN
        # Opening syncs the names in the directory, before anything is written.
        with open(self._open, "w", encoding="ascii", opener=private.opener) as file:
            file.write(boot_id())
        self._db = Rdict(str(directory), self._options())

    @classmethod
    def open(cls, directory: Path, *, anew: bool = False) -> Self:
        """Open a directory; one that cannot be used is made anew.

        Args:
            directory: Made where it is missing.
            anew: Forget what is there.

        Raises:
            OSError: It cannot be used at all, or somebody else has it open.
        """
        if not anew and not _was_open_at_shutdown(directory):
            try:
                return cls(directory)
            except Exception as error:  # rocksdict has no class for RocksDB's
                if "/LOCK: " in str(error):
                    raise OSError(f"{directory}: {error}") from error
        shutil.rmtree(directory, ignore_errors=True)
        try:
            return cls(directory)
        except Exception as error:
            raise OSError(f"{directory}: {error}") from error

    @classmethod
    def peek(cls, directory: Path, front: bytes) -> dict[bytes, bytes]:
        """Keys that begin with a front, and their values, without changing a byte.

        Raises:
            OSError: The directory cannot be read.
        """
        options = Options(raw_mode=True)
        try:
            db = Rdict(str(directory), options, access_type=AccessType.read_only())
        except Exception as error:  # rocksdict has no class for RocksDB's
            raise OSError(f"{directory}: {error}") from error
        found = {}
        at = db.iter()
        at.seek(front)
        while at.valid() and at.key().startswith(front):
            found[bytes(at.key())] = bytes(at.value())
            at.next()
        db.close()
        return found

    def _options(self) -> Options:
        blocks = BlockBasedOptions()
        blocks.set_block_cache(Cache(self.MEMORY_BYTES))
        if self.BLOOM_BITS:
            blocks.set_bloom_filter(self.BLOOM_BITS, block_based=False)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(blocks)
        options.set_compression_type(DBCompressionType.lz4())
        options.set_write_buffer_size(self.MEMORY_BYTES)
        options.set_max_open_files(_OPEN_FILES)
        options.set_keep_log_file_num(_INFO_LOGS)
        # It starts as many to open the few files of a start, 16 if not told, also for
        # none at all: half a millisecond of CPU of each store.
        options.set_max_file_opening_threads(1)
        return options

    def _get(self, key: bytes) -> bytes | None:
        return cast("bytes | None", self._db.get(key))

    @staticmethod
    def _batch() -> Batch:
        return WriteBatch(raw_mode=True)

    def _write(self, batch: Batch) -> None:
        self._db.write(batch)

    def _from(self, start: bytes, front: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from a key on, as long as keys begin with a front."""
        at = self._db.iter()
        at.seek(start)
        while at.valid():
            key = at.key()
            if not key.startswith(front):
                return
            yield key, at.value()
            at.next()
        # It ends at a block that is damaged as it does behind the last key.
        at.status()

    def _keys_back(self, start: bytes, front: bytes) -> Iterator[bytes]:
        """Keys from one on, the last first, as long as they begin with a front."""
        at = self._db.iter()
        at.seek_for_prev(start)
        while at.valid():
            key = at.key()
            if not key.startswith(front):
                return
            yield key
            at.prev()
        at.status()

    def _has_between(self, start: bytes, end: bytes) -> bool:
        """Whether there is a key from one on and below another."""
        # Without a bound it would look for one among all that were deleted.
        bounded = ReadOptions()
        bounded.set_iterate_upper_bound(end)
        at = self._db.iter(bounded)
        at.seek(start)
        at.status()
        return at.valid()

    def _is_empty(self) -> bool:
        return not self._has_between(b"", _END)

    @staticmethod
    def _forget_all(batch: Batch) -> None:
        batch.delete_range(b"", _END)

    def close(self) -> None:
        """Release the directory, with all in files that are synced."""
        self._db.flush()
        self._db.close()
        self._open.unlink()
