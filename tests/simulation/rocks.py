"""RocksDB: sorted keys in memory, with what a kill and a power loss leave of them.

As the real one is used (`gateway/node/rocks.py`): a batch is written whole or not at
all, and what was written outlives the process; what was open when the machine lost its
power is made anew by the product, whatever is left of it.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedDict

from ropeway.gateway.node import rocks
from ropeway.storage import private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.simulation.files import Files


class Store:
    """What one directory has."""

    def __init__(self) -> None:
        self.data: SortedDict = SortedDict()
        self.opened_at_boot: int | None = None
        """The boot in which it was opened and not closed."""


class Batch:
    """Changes that are written together."""

    def __init__(self) -> None:
        self.changes: list[Callable[[SortedDict], Any]] = []

    def len(self) -> int:
        return len(self.changes)

    def put(self, key: bytes, value: bytes) -> None:
        self.changes.append(lambda data: data.__setitem__(key, bytes(value)))

    def delete(self, key: bytes) -> None:
        self.changes.append(lambda data: data.pop(key, None))

    def delete_range(self, first: bytes, end: bytes) -> None:
        def drop(data: SortedDict) -> None:
            for key in [*data.irange(first, end, (True, False))]:
                del data[key]

        self.changes.append(drop)


def patches(files: Files) -> dict[str, Any]:
    """What takes the place of each method of `rocks.Rocks`."""

    def begin(self: Any, directory: Path) -> None:
        files.alive()
        machine = files.machine_of(directory)
        assert machine is not None
        private.directory(directory)
        key = str(directory).removeprefix(machine.front)
        store = machine.stores.setdefault(key, Store())
        store.opened_at_boot = machine.boots
        self._store = store

    def opened(cls: Any, directory: Path, *, anew: bool = False) -> Any:
        machine = files.machine_of(directory)
        assert machine is not None
        key = str(directory).removeprefix(machine.front)
        known = machine.stores.get(key)
        boot = known.opened_at_boot if known is not None else None
        if anew or (boot is not None and boot != machine.boots):
            machine.stores.pop(key, None)
            shutil.rmtree(directory, ignore_errors=True)
        return cls(directory)

    def get(self: Any, key: bytes) -> bytes | None:
        files.alive()
        found: bytes | None = self._store.data.get(key)
        return found

    def write(self: Any, batch: Batch) -> None:
        files.alive()
        for change in batch.changes:
            change(self._store.data)

    def from_(self: Any, start: bytes, front: bytes) -> Iterator[tuple[bytes, bytes]]:
        # As an iterator of RocksDB, it sees what was there when it was made.
        for key, value in [*_range(self._store.data, start)]:
            if not key.startswith(front):
                return
            yield key, value

    def keys_back(self: Any, start: bytes, front: bytes) -> Iterator[bytes]:
        for key in [*self._store.data.irange(None, start, reverse=True)]:
            if not key.startswith(front):
                return
            yield key

    def has_between(self: Any, start: bytes, end: bytes) -> bool:
        return any(True for _ in self._store.data.irange(start, end, (True, False)))

    def close(self: Any) -> None:
        files.alive()
        self._store.opened_at_boot = None

    return {
        "__init__": begin,
        "open": classmethod(opened),
        "_get": get,
        "_batch": staticmethod(Batch),
        "_write": write,
        "_from": from_,
        "_keys_back": keys_back,
        "_has_between": has_between,
        "close": close,
    }


def _range(data: SortedDict, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    for key in data.irange(start):
        yield key, data[key]


KIND = rocks.Rocks
