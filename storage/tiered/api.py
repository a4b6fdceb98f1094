"""The contract of providers: where tiered segments are kept, as objects with names.

Laws, held by tests/contracts/provider.py for every provider:

* An object is there whole or not at all, and once it is, a crash of this process or
  a power cut of this machine does not take it away.
* What was put is what is got. An object that is put again is replaced at once.
* Names are of a-z, A-Z, 0-9, `_`, `-`, `=` and `.`, with `/` in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from ropeway.storage.api import LogError, LogUnavailableError


class ProviderError(LogUnavailableError):
    """The provider did not do it, or did not say so; asking again may work."""


class ObjectMissingError(LogError):
    """There is no object of that name."""


class Provider(Protocol):
    """Keeps objects. All calls come from one event loop's thread, and none blocks it.

    Every call may raise `ProviderError`; its text names the provider and the object.
    """

    @property
    def label(self) -> str:
        """What people know it by: a URL without secrets."""

    async def put(self, name: str, pieces: Sequence[bytes | memoryview]) -> None:
        """Keep an object, made of these pieces; it is durable when this returns."""

    async def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Bytes of an object: from `start` on, `size` or all; fewer past its end.

        Raises:
            ObjectMissingError: There is no such object.
        """

    def names(self, prefix: str) -> AsyncIterator[tuple[str, int]]:
        """Names and sizes of all objects below a prefix that ends in `/`, or is empty.

        In no order.
        """

    async def delete(self, name: str) -> None:
        """Take an object away; absent ones are fine."""

    async def close(self) -> None:
        """Give up what is held open."""


OpenProvider = Callable[[str], Provider]
"""An entry point of the group `ropeway.tier`, named like the scheme: takes a URL."""
