"""What tests of tiered storage share: logs with a tier, and a provider with faults."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ropeway.storage.file import FileLogSettings
from ropeway.storage.file import open_log as open_files
from ropeway.storage.tiered.api import ProviderError
from ropeway.storage.tiered.log import TieredLog, open_log
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.tier_config import TieredSettings
from tests.contracts.log import TOPIC, begin, opened, record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from ropeway.storage.api import Partition
    from ropeway.storage.tiered.api import Provider

QUICK = TieredSettings(poll_ms=10, expire_every_ms=20, commit_ms=1)
SMALL = FileLogSettings(segment_bytes=1 << 16, flush_interval_ms=5, tail_bytes=0)
LONG_S = 120
"""A machine may be loaded; what takes so long never comes."""


async def tiered(
    directory: Path, provider: Provider, settings: TieredSettings = QUICK, **more
) -> TieredLog:
    """A log of small segments with a tier that has all of it."""
    files = more.pop("files", SMALL)
    inner = open_files(directory / "log", files)
    try:
        return await open_log(inner, provider, directory / "tier", settings, **more)
    except BaseException:
        await inner.close()
        raise


@contextlib.asynccontextmanager
async def running(
    directory: Path, provider: Provider, settings: TieredSettings = QUICK, **more
) -> AsyncIterator[TieredLog]:
    """The same, with a topic, closed in the end."""
    log = await tiered(directory, provider, settings, **more)
    try:
        await log.create(TOPIC, [0, 1])
        await opened(log, 0)
        yield log
    finally:
        await log.close()


async def fill(
    partition: Partition, texts: Sequence[str], store_ms: int = 1000
) -> None:
    """Append records one by one, with tags and keys by their texts, a second apart."""
    for at, text in enumerate(texts):
        made = record(text, len(text), [f"key-{text}"])
        await begin(partition, made, store_ms=store_ms + 1000 * at)


async def forget_local(log: TieredLog, partition: Partition) -> None:
    """Have the log below drop all that is in the tier."""
    inner = log.inner
    await begin(
        partition, record("x" * 70_000), store_ms=500_000
    )  # needs a segment of its own
    await inner.flush()
    await inner.expire(1 << 50, log.dispatcher.safe_position)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(LONG_S):
        while not condition():  # noqa: ASYNC110 - nobody would tell
            await asyncio.sleep(0.01)


class Faulty(MemoryProvider):
    """A provider that does what it is told to instead of what it is asked for.

    `fault` is called with what is asked ("put", "get", "delete", "list") and the name;
    it raises, waits, or answers what to do instead.
    """

    def __init__(self, fault: Callable[[str, str], object] | None = None) -> None:
        super().__init__("faulty://here")
        self.fault = fault or (lambda _what, _name: None)
        self.asked: list[tuple[str, str]] = []

    async def put(self, name, pieces):
        wanted = await self._ask("put", name)
        if wanted == "partial":
            data = b"".join(pieces)
            self.objects[name] = data[: len(data) // 2]
        elif wanted == "lost answer":
            await super().put(name, pieces)
            raise ProviderError(f"{self.label}, object {name}: 503 after it was put")
        else:
            await super().put(name, pieces)

    async def get(self, name, start=0, size=None):
        wanted = await self._ask("get", name)
        data = await super().get(name, start, size)
        if wanted == "altered" and data:
            data = data[:-1] + bytes([data[-1] ^ 1])
        return data

    async def names(self, prefix):
        await self._ask("list", prefix)
        async for one in super().names(prefix):
            yield one

    async def delete(self, name):
        await self._ask("delete", name)
        await super().delete(name)

    async def _ask(self, what: str, name: str) -> object:
        self.asked.append((what, name))
        await asyncio.sleep(0)
        answer = self.fault(what, name)
        if asyncio.iscoroutine(answer):
            answer = await answer
        return answer


def fails(*whats: str, part: str = "", times: int = 1 << 30):
    """A fault: so many calls for these are answered with an error."""
    left = [times]

    def fault(what: str, name: str) -> object:
        if what in whats and part in name and left[0] > 0:
            left[0] -= 1
            raise ProviderError(f"faulty://here, object {name}: 503 Slow Down")
        return None

    return fault
