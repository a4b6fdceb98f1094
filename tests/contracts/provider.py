"""What every provider of tiers must do. A test subclasses `ProviderContract`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.tiered.api import ObjectMissingError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.tiered.api import Provider

    Opener = Callable[[], Provider]

NAME = "a=25b/0-00ff/00000000000000000001-00000000000000000002.data"


class ProviderContract:
    """Laws of `storage.tiered.api.Provider`."""

    @pytest.fixture
    def open_provider(self) -> Callable[[], Provider]:
        """A function that opens the same store again."""
        raise NotImplementedError

    def run(
        self, test: Callable[[Provider], Awaitable[None]], open_provider: Opener
    ) -> None:
        async def main() -> None:
            provider = open_provider()
            try:
                await test(provider)
            finally:
                await provider.close()

        asyncio.run(main())

    def test_what_was_put_is_got_whole_and_in_part(self, open_provider) -> None:
        async def test(provider: Provider) -> None:
            await provider.put(NAME, [b"abc", memoryview(b"defg"), b"h"])
            assert await provider.get(NAME) == b"abcdefgh"
            assert await provider.get(NAME, 2, 3) == b"cde"
            assert await provider.get(NAME, 5) == b"fgh"
            assert await provider.get(NAME, 7, 2) == b"h"
            assert await provider.get(NAME, 0, 8) == b"abcdefgh"

        self.run(test, open_provider)

    def test_a_large_object_comes_back_as_it_was(self, open_provider) -> None:
        async def test(provider: Provider) -> None:
            data = bytes(range(256)) * (80 * 1024)
            await provider.put(NAME, [data])
            assert await provider.get(NAME) == data
            assert await provider.get(NAME, 17 << 20, 300) == data[:300]

        self.run(test, open_provider)

    def test_another_put_replaces_the_object(self, open_provider) -> None:
        async def test(provider: Provider) -> None:
            await provider.put(NAME, [b"a long one"])
            await provider.put(NAME, [b"short"])
            assert await provider.get(NAME) == b"short"

        self.run(test, open_provider)

    def test_it_is_there_after_another_opening(self, open_provider) -> None:
        async def test(provider: Provider) -> None:
            await provider.put(NAME, [b"x"])
            again = open_provider()
            assert await again.get(NAME) == b"x"
            await again.close()

        self.run(test, open_provider)

    def test_names_come_with_their_sizes(self, open_provider) -> None:
        async def test(provider: Provider) -> None:
            assert [one async for one in provider.names("")] == []
            for name in ("a/1/x", "a/2/x", "ab/1/x"):
                await provider.put(name, [name.encode(), b"!"])
            found = {one async for one in provider.names("")}
            assert found == {("a/1/x", 6), ("a/2/x", 6), ("ab/1/x", 7)}
            assert {one async for one in provider.names("a/")} == {
                ("a/1/x", 6),
                ("a/2/x", 6),
            }
            assert [one async for one in provider.names("none/")] == []

        self.run(test, open_provider)

    def test_what_was_deleted_is_missing(self, open_provider) -> None:
        async def test(provider: Provider) -> None:
            await provider.put(NAME, [b"x"])
            await provider.delete(NAME)
            await provider.delete(NAME)
            with pytest.raises(ObjectMissingError, match="a=25b"):
                await provider.get(NAME)
            with pytest.raises(ObjectMissingError, match="a=25b"):
                await provider.get(NAME, 1, 2)
            assert [one async for one in provider.names("")] == []

        self.run(test, open_provider)
