"""A provider in memory, for tests: what it has ends with the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.tiered.api import ObjectMissingError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

_shared: dict[str, dict[str, bytes]] = {}
"""Objects by URL: opened again within a process, they are there again."""


class MemoryProvider:
    """Objects in a dictionary."""

    def __init__(
        self, url: str = "memory://", objects: dict[str, bytes] | None = None
    ) -> None:
        self.label = url
        self.objects = {} if objects is None else objects

    async def put(self, name: str, pieces: Sequence[bytes | memoryview]) -> None:
        """Keep an object; see `storage.tiered.api`."""
        self.objects[name] = b"".join(pieces)

    async def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Bytes of an object; see `storage.tiered.api`."""
        try:
            data = self.objects[name]
        except KeyError:
            raise ObjectMissingError(f"{self.label} has no object {name}") from None
        return data[start:] if size is None else data[start : start + size]

    async def names(self, prefix: str) -> AsyncIterator[tuple[str, int]]:
        """All objects below a prefix; see `storage.tiered.api`."""
        for name, data in list(self.objects.items()):
            if name.startswith(prefix):
                yield name, len(data)

    async def delete(self, name: str) -> None:
        """Take an object away; see `storage.tiered.api`."""
        self.objects.pop(name, None)

    async def close(self) -> None:
        """Nothing is held open."""


def open_provider(url: str) -> MemoryProvider:
    """The objects of that URL in this process."""
    return MemoryProvider(url, _shared.setdefault(url, {}))
