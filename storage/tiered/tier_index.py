"""All partitions of one tier: in memory, in the metadata, on the provider.

What is done to a segment is done in steps that a crash may come between:

* put: metadata says `new`; data, keys, index; metadata says `sealed`. The index makes
  it count: a segment without one is never read.
* take away: metadata says `expired`; index, keys, data; metadata forgets it.

`settle` goes on with whatever an earlier process left half done.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ropeway.storage.sealed.layout import SegmentError
from ropeway.storage.tiered.api import ObjectMissingError, ProviderError
from ropeway.storage.tiered.listing import index_of
from ropeway.storage.tiered.object_names import PARTS
from ropeway.storage.tiered.tier_partition import Segment, TierPartition, segment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.common.throttle import Throttle
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.metadata import Metadata
    from ropeway.storage.tiered.object_names import SegmentName
    from ropeway.storage.tiered.pending_segment import Encoded

    T = TypeVar("T")


class TierIndex:
    """Puts segments and takes them away. The event loop's thread only."""

    def __init__(
        self, provider: Provider, metadata: Metadata, throttle: Throttle
    ) -> None:
        self.provider = provider
        self.metadata = metadata
        self.flats: dict[int, TierPartition] = {}
        """By the partition's identity."""
        self.uploaded_bytes = 0
        self._throttle = throttle
        self._thread = ThreadPoolExecutor(1, "tier-metadata")
        self._leftover: list[Segment] = []
        self._by_topic: dict[str, dict[int, TierPartition]] = {}
        for queue in metadata.iterate_queue():
            self.flat(queue.topic, queue.number, queue.identity)
        for segment, status in metadata.iterate_file_segment():
            if status == "sealed":
                self.flats[segment.name.identity].add(segment)
            else:
                self._leftover.append(segment)
        self._gone: set[int] = set()
        """Partitions that were deleted since this process began."""
        self._doomed = {
            queue.identity
            for queue in metadata.iterate_queue()
            if queue.status == "deleted"
        }

    async def note(self, do: Callable[[], T]) -> T:
        """Have the metadata changed, by their thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, do)

    def flat(self, topic: str, number: int, identity: int) -> TierPartition:
        """A partition, which is made where the tier has nothing of it."""
        found = self.flats.get(identity)
        if found is None:
            found = self.flats[identity] = TierPartition(topic, number, identity)
            self._by_topic.setdefault(topic, {})[identity] = found
        return found

    def of_topic(self, topic: str) -> list[TierPartition]:
        """Its partitions, also those of a topic of that name that was deleted."""
        return [*self._by_topic.get(topic, {}).values()]

    async def put(self, encoded: Encoded) -> Segment:
        """Put a segment; the same may be tried again after a failure.

        Raises:
            ProviderError: The provider did not take all of it.
        """
        segment = await self._put(encoded)
        name = segment.name
        if name.identity in self._gone:  # its topic was deleted meanwhile
            await self._remove(name)
            await self.note(lambda: self._forget(name.topic, name.identity))
            return segment
        await self.note(lambda: self.metadata.update_file_segment(segment, "sealed"))
        self.flat(*name[:3]).add(segment)
        return segment

    async def replace(self, old: list[Segment], encoded: Encoded) -> Segment:
        """Put a segment that has all records of several others in their place.

        Raises:
            ProviderError: The provider did not take all of it; nothing has changed.
        """
        segment = await self._put(encoded)
        await self.note(lambda: self.metadata.swap(old, segment))
        self.flat(*segment.name[:3]).add(segment)
        self._leftover += old
        return segment

    async def _put(self, encoded: Encoded) -> Segment:
        name, about = encoded.name, encoded.about
        segment = segment_of(name, about)

        def begin() -> None:
            self.metadata.add_queue(*name[:3])
            self.metadata.update_file_segment(segment, "new")

        await self.note(begin)
        await self._put_object(name.object("data"), encoded.data, about.data_bytes)
        if encoded.keys is not None:
            keys = encoded.keys
            await self._put_object(name.object("keys"), [keys], len(keys))
        index = encoded.index_object
        await self._put_object(name.object("index"), [index], len(index))
        return segment

    async def _put_object(
        self, name: str, pieces: Sequence[bytes | memoryview], size: int
    ) -> None:
        await self._throttle.take(size)
        await self.provider.put(name, pieces)
        # A provider that says it has what it has not must not cost the local copy.
        if len(await self.provider.get(name, size - 1, 2)) != 1:
            raise ProviderError(
                f"{self.provider.label}, object {name}: it has not the {size} bytes "
                "that were put; check the store"
            )
        self.uploaded_bytes += size

    async def expire(self, segment: Segment) -> None:
        """Take a segment away, because it is old enough.

        Raises:
            ProviderError: Its objects are not all gone; `settle` goes on with it.
        """
        await self.note(lambda: self.metadata.update_file_segment(segment, "expired"))
        self.flats[segment.name.identity].drop(segment)
        self._leftover.append(segment)
        await self.settle()

    async def doom(self, identities: set[int]) -> None:
        """Have all of some partitions taken away, by the next `settle`."""

        def mark() -> None:
            for identity in identities:
                self.metadata.update_queue(identity, "deleted")

        self._gone |= identities
        self._doomed |= identities & self.flats.keys()
        await self.note(mark)

    async def settle(self) -> None:
        """Finish what was begun: adopt or remove half-put segments, delete the old.

        Raises:
            ProviderError: The rest is tried again by the next call.
        """
        while self._leftover:
            segment = self._leftover[-1]
            name = segment.name
            found = await self.note(partial(self.metadata.get_file_segment, name))
            if found is not None and found[1] == "new" and await self._adopt(segment):
                pass
            elif found is not None and found[1] != "sealed":
                await self._remove(name)
            self._leftover.pop()
        for identity in [*self._doomed]:
            flat = self.flats[identity]
            for segment in [*flat.segments]:
                flat.drop(segment)
                await self._remove(segment.name)
            await self.note(partial(self._forget, flat.topic, identity))
            self._doomed.discard(identity)
            del self.flats[identity]
            del self._by_topic[flat.topic][identity]
            if not self._by_topic[flat.topic]:
                del self._by_topic[flat.topic]

    def _forget(self, topic: str, identity: int) -> None:
        self.metadata.delete_queue(identity)
        self.metadata.delete_topic(topic)

    async def _adopt(self, segment: Segment) -> bool:
        """Take over a segment whose index was put before its process ended."""
        try:
            await index_of(self.provider, segment.name)
        except (ObjectMissingError, SegmentError):
            return False
        flat = self.flats[segment.name.identity]
        here = (segment.base, segment.end)
        if flat.uncovered(*here) != here:
            return False
        await self.note(lambda: self.metadata.update_file_segment(segment, "sealed"))
        flat.add(segment)
        return True

    async def _remove(self, name: SegmentName) -> None:
        for part in reversed(PARTS):
            await self.provider.delete(name.object(part))
        await self.note(lambda: self.metadata.delete_file_segment(name))

    async def close(self) -> None:
        """Give up metadata and provider."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._thread.shutdown)
        self.metadata.close()
        await self.provider.close()
