"""Getting blocks, indexes and keys from the provider, keeping some, reading ahead.

Blocks are what is fetched, so no request and no piece of memory is larger than a block
but where one record is. Who reads on from block to block has the next ones fetched
before they are asked for, the further ahead the longer it goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from ropeway.common.slow_reads import NOTED, SlowRead
from ropeway.storage.api import LogDamagedError, LogUnavailableError
from ropeway.storage.sealed.layout import NewerSegmentError, SegmentError, decode_keys
from ropeway.storage.tiered.api import ObjectMissingError, ProviderError
from ropeway.storage.tiered.tier_config import BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.sealed.index import Block, Index
    from ropeway.storage.sealed.verify import Part
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.object_names import SegmentName
    from ropeway.storage.tiered.tier_config import TieredSettings
    from ropeway.storage.tiered.tier_partition import Segment

ATTEMPTS = 3
"""How often a reader's request is tried; what was not there then is an error."""
FIRST_WAIT_S = 0.1

MOST_READERS = 1024
"""Of whom it is remembered how far ahead is read for them."""

INDEX = -1
KEYS = -2
"""Beside numbers of blocks, what of a segment is fetched."""
_PARTS: dict[int, Part] = {INDEX: "index", KEYS: "keys"}


class GoneError(Exception):
    """The segment was taken away meanwhile: expired, or put together with others."""


class MissingError(Exception):
    """Something of a segment is not in memory."""

    def __init__(self, segment: Segment, what: int) -> None:
        super().__init__(segment.name)
        self.segment = segment
        self.what = what


Key = tuple["SegmentName", int]


class Fetcher:
    """What was fetched, least recently used first, in bounded memory."""

    def __init__(
        self,
        provider: Provider,
        settings: TieredSettings,
        is_there: Callable[[Segment], bool],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._provider = provider
        self.limit = settings.cache_bytes
        self._ahead = settings.read_ahead_bytes
        self._is_there = is_there
        self._sleep = sleep
        self._kept: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self.bytes = 0
        self.coming: dict[Key, asyncio.Task[Any]] = {}
        self._requests = asyncio.Semaphore(settings.fetches)
        self._windows: OrderedDict[tuple[SegmentName, int], int] = OrderedDict()
        """Blocks to be read ahead by who comes to one of a segment next."""

    def index(self, segment: Segment) -> Index:
        """A segment's index, or `MissingError`."""
        found: Index = self._get(segment, INDEX)
        return found

    def block(self, segment: Segment, number: int) -> Block:
        """One of a segment's blocks, or `MissingError`."""
        found: Block = self._get(segment, number)
        return found

    def keys(self, segment: Segment) -> memoryview:
        """A segment's keys, or `MissingError`."""
        found: memoryview = self._get(segment, KEYS)
        return found

    def kept(self, segment: Segment, what: int) -> Any:
        """What of a segment is in memory, by a block's number or `INDEX`, or None."""
        key = segment.name, what
        kept = self._kept.get(key)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def _get(self, segment: Segment, what: int) -> Any:
        found = self.kept(segment, what)
        if found is None:
            raise MissingError(segment, what)
        return found

    async def fetch(self, missing: MissingError) -> None:
        """Get what was missing.

        Raises:
            GoneError: The segment was taken away.
            LogDamagedError: What the provider has is not what was put.
            LogUnavailableError: The provider did not answer.
        """
        segment, what = missing.segment, missing.what
        began_ns = time.time_ns()
        try:
            await self._wait_for(segment, what)
        finally:
            if (noted := NOTED.get()) is not None:
                part: Part = _PARTS.get(what, "data")
                name = segment.name.object(part)
                noted.append(SlowRead(name, began_ns, time.time_ns()))

    def read_ahead(self, segment: Segment, number: int, after: Segment | None) -> None:
        """Fetch what follows on a block that was read to its end.

        Args:
            segment: The one that is being read.
            number: Of the block.
            after: The segment that is next.
        """
        window = self._windows.get((segment.name, number), 1)
        # Half of the memory, so that what was read ahead is there when it is read.
        most = min(self._ahead, self.limit // 2) // BLOCK_BYTES
        self._windows[segment.name, number + 1] = min(2 * window, most)
        if len(self._windows) > MOST_READERS:
            self._windows.popitem(last=False)
        blocks = self.index(segment).blocks
        for ahead in range(number + 1, min(number + 1 + window, blocks)):
            if (segment.name, ahead) not in self._kept:
                self._begin(segment, ahead)
        if number + 1 + window >= blocks and after is not None:
            for what in (INDEX, 0):
                if (after.name, what) not in self._kept:
                    self._begin(after, what)
            self._windows[after.name, 0] = window

    async def _wait_for(self, segment: Segment, what: int) -> Any:
        kept = self._kept.get((segment.name, what))
        if kept is not None:
            return kept[0]
        # Another reader may wait for it too.
        return await asyncio.shield(self._begin(segment, what))

    def _begin(self, segment: Segment, what: int) -> asyncio.Task[Any]:
        key = segment.name, what
        task = self.coming.get(key)
        if task is None:
            task = self.coming[key] = asyncio.get_running_loop().create_task(
                self._load(segment, what)
            )
            task.add_done_callback(lambda done: self._came(key, done))
        return task

    def _came(self, key: Key, task: asyncio.Task[Any]) -> None:
        del self.coming[key]
        if not task.cancelled():
            task.exception()  # whoever waits for it is told; nobody may

    async def _load(self, segment: Segment, what: int) -> Any:
        value: Any
        if what == INDEX:
            async with self._requests:
                data = await self._bytes_of(segment, "index")
            value = await self._checked(
                segment, "index", lambda: segment.name.opened(data)
            )
            self._keep((segment.name, what), value, len(data))
            return value
        index: Index = await self._wait_for(segment, INDEX)
        if what == KEYS:
            async with self._requests:
                data = await self._bytes_of(segment, "keys")
            value = await self._checked(
                segment, "keys", lambda: decode_keys(data, index.about)
            )
            self._keep((segment.name, what), value, len(data))
        else:
            async with self._requests:
                data = await self._bytes_of(
                    segment, "data", *index.data_at(what, what + 1)
                )
            value = await self._checked(
                segment, "data", lambda: index.open_block(what, data)
            )
            # What it takes in memory, which may be a thousand times what was fetched.
            self._keep((segment.name, what), value, len(value.data))
        return value

    async def _checked(
        self, segment: Segment, part: Part, decode: Callable[[], Any]
    ) -> Any:
        """Decode in a thread, for it takes a while."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, decode)
        except SegmentError as error:
            name = segment.name.object(part)
            raise damaged(self._provider, name, error) from error

    async def _bytes_of(
        self, segment: Segment, part: Part, start: int = 0, size: int | None = None
    ) -> bytes:
        name = segment.name.object(part)
        wait_s = FIRST_WAIT_S
        for left in reversed(range(ATTEMPTS)):
            try:
                data = await self._provider.get(name, start, size)
            except ObjectMissingError as error:
                if not self._is_there(segment):
                    raise GoneError from error
                raise LogDamagedError(
                    f"{error}, though it was put there; restore the object"
                ) from error
            except ProviderError as error:
                if not left:
                    raise LogUnavailableError(str(error)) from error
            else:
                return data
            await self._sleep(wait_s)
            wait_s *= 2
        raise AssertionError

    def _keep(self, key: Key, value: Any, size: int) -> None:
        self._kept[key] = value, size
        self.bytes += size
        while self.bytes > self.limit and len(self._kept) > 2:  # noqa: PLR2004 - an index and a block
            _, (_, old) = self._kept.popitem(last=False)
            self.bytes -= old

    async def close(self) -> None:
        """End what is on its way."""
        tasks = [*self.coming.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def damaged(provider: Provider, name: str, error: SegmentError) -> LogDamagedError:
    """What to say of an object that is not what was put, or is of a newer version."""
    remedy = "; restore the object, or delete it to go on without its messages"
    if isinstance(error, NewerSegmentError):
        remedy = ""
    return LogDamagedError(f"{provider.label}, object {name}: {error}{remedy}")
