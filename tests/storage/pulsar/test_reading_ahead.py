"""What a cold reader has asked for ahead is bounded, whatever comes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar import read_ahead
from ropeway.storage.pulsar.compression import LARGEST_BYTES
from ropeway.storage.pulsar.errors import PulsarUnavailableError
from ropeway.storage.pulsar.pack import encode
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.read_ahead import Readers
from ropeway.storage.pulsar.terms import after
from tests.contracts.log import record
from tests.remoting import looped
from tests.storage.pulsar.test_read_ahead import Named, stored

if TYPE_CHECKING:
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.pack_search import Finder
    from ropeway.storage.pulsar.partition import PulsarPartition

SMALL, LARGE = 300, 30
LARGE_BYTES = 4 * 1024 * 1024


class Partition(Named):
    """A partition of one record a pack, that remembers nothing."""

    compacted = False
    end_offset = SMALL + LARGE

    def cached_pack(self, _offset: int) -> None:
        return None

    def past_gap(self, offset: int) -> int:
        return offset


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, packs may be on their way for longer than readers wait."""
    monkeypatch.setattr(read_ahead, "LOOK_AGAIN_S", 200.0)


async def never(_partition: Any) -> None:
    raise AssertionError("nothing is missing")


def entry_at(offset: int) -> Any:
    text = "x" * (LARGE_BYTES if offset >= SMALL else 10)
    pack = encode([([record(text)], 1, None, 0)], offset)
    return stored(pack, after(1, offset + 1))


class Topic:
    """Brings the packs that are asked for, from where a reader begins."""

    def __init__(self) -> None:
        self.readers = 0

    async def by_offset(self, _partition: Any, offset: int) -> Any:
        return SimpleNamespace(ledger=0, entry=offset)

    async def reader(
        self, _name: str, start: Any, *, received: Any, permits: int, **_: Any
    ) -> Any:
        self.readers += 1
        reader = SimpleNamespace(at=start.entry)

        def bring(entries: int) -> None:
            for _ in range(entries):
                if reader.at < SMALL + LARGE:
                    reader.at += 1
                    received(entry_at(reader.at - 1))

        def more(entries: int) -> None:
            asyncio.get_running_loop().call_soon(bring, entries)

        async def close() -> None:
            reader.at = SMALL + LARGE

        reader.more, reader.close = more, close
        more(permits)
        return reader


@looped
async def test_readers_that_are_opened_at_once_count_each_other():
    topic = Topic()
    readers = Readers(
        cast("PulsarClient", topic),
        cast("Finder", topic),
        PulsarLogSettings(readers=3),
        never,
    )
    partition = cast("PulsarPartition", Partition())
    opening, there = topic.reader, []

    async def late(*given: Any, **more: Any) -> Any:
        await asyncio.sleep(0)
        there.append(readers._count)
        return await opening(*given, **more)

    topic.reader = late
    # None of them goes on where another one has read ahead.
    places = range(SMALL - 9, 0, -9)
    await asyncio.gather(*(readers.pack_at(partition, offset) for offset in places))
    assert len(there) == len(places)
    assert max([*there, readers._count]) == 3

    async def refusing(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(0)
        raise PulsarUnavailableError("no")

    topic.reader = refusing
    readers.forget(partition)
    for _ in range(5):
        with pytest.raises(LogUnavailableError):
            await readers.pack_at(partition, 5)
    assert readers._count == 0
    await readers.close()


@looped
async def test_long_packs_behind_many_short_ones_take_no_more_than_is_allowed():
    topic = Topic()
    settings = PulsarLogSettings()

    readers = Readers(
        cast("PulsarClient", topic), cast("Finder", topic), settings, never
    )
    partition = cast("PulsarPartition", Partition())
    held = []
    for offset in range(SMALL + LARGE):
        pack = await readers.pack_at(partition, offset)
        assert pack is not None
        assert pack.base_offset == offset
        held += [one._bytes for one in readers._sessions.get(partition, ())]
    assert max(held) > LARGE_BYTES
    assert max(held) < settings.read_ahead_bytes + LARGEST_BYTES + 2 * LARGE_BYTES
    # Those after the first know how long packs are.
    assert topic.readers == 2
    await readers.close()
