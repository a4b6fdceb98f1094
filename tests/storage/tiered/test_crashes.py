"""A process that ends at any step of tiering leaves nothing lost, doubled or torn.

Steps are calls to the provider and changes of the metadata. Before one of them all
ends: nothing is done any more until the log is opened again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.tiered.listing import listed
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.verify import verify
from tests.contracts.log import TOPIC, opened, read_all
from tests.storage.tiered.tiers import QUICK, Faulty, fill, forget_local, tiered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

SETTINGS = msgspec.structs.replace(QUICK, commit_records=4, merge_count=2, uploads=1)
CHANGES = [
    *("put_state", "add_queue", "update_queue", "delete_queue", "delete_topic"),
    *("update_file_segment", "delete_file_segment", "swap"),
]


class Ends:
    """Counts steps, and lets the one of a number and all behind it fail."""

    def __init__(self, at: int) -> None:
        self.left = at

    def step(self, do: Callable[[], object]) -> object:
        self.left -= 1
        if self.left > 0:
            return do()
        raise LogUnavailableError("the process has ended")

    @property
    def over(self) -> bool:
        return self.left <= 0


class Mortal(Faulty):
    """A provider on the other side of a process that ends."""

    def __init__(self, objects: dict[str, bytes], ends: Ends | None) -> None:
        super().__init__()
        self.objects = objects
        self.ends = ends

    def _step(self, do):
        return do() if self.ends is None else self.ends.step(do)

    async def put(self, name, pieces):
        data = b"".join(pieces)
        self._step(lambda: self.objects.__setitem__(name, data))

    async def delete(self, name):
        self._step(lambda: self.objects.pop(name, None))


async def until_it_ends(
    directory: Path, objects: dict[str, bytes], ends: Ends, monkeypatch
) -> None:
    """Dispatch, put together, expire, delete; as far as it comes."""
    with monkeypatch.context() as patched:
        log = await tiered(directory, Mortal(objects, ends), SETTINGS)
        for name in CHANGES:
            real = getattr(Metadata, name)

            def mortal(self, *args, real=real):
                return ends.step(lambda: real(self, *args))

            patched.setattr(Metadata, name, mortal)
        await log.create(TOPIC, [0, 1])
        await log.create("doomed", [0])
        for number in (0, 1):
            await fill(log.partition(TOPIC, number), [f"{at}" for at in range(7)])
        await fill(log.partition("doomed", 0), ["a", "b"])
        try:
            await log.dispatch()
            await log.merge()
            await log.delete("doomed")
            await log.tier_index.settle()
            (oldest, *_) = log.tier_index.flats[log.inner.identity(TOPIC, 1)].segments
            await log.tier_index.expire(oldest)
        except LogUnavailableError:
            assert ends.over
        await log.close()


def test_nothing_is_lost_or_left_wherever_a_process_ends(tmp_path, monkeypatch):
    async def one(at: int) -> bool:
        directory, objects = tmp_path / str(at), {}
        ends = Ends(at)
        await until_it_ends(directory, objects, ends, monkeypatch)
        provider = Mortal(objects, None)
        log = await tiered(directory, provider, SETTINGS)
        for number in (0, 1):
            await opened(log, number)
        await log.dispatch()
        await log.merge()
        await forget_local(log, log.partition(TOPIC, 1))
        for number in (0, 1):
            partition = log.partition(TOPIC, number)
            texts = [text for text in await read_all(partition) if len(text) < 9]
            wanted = [f"{at}" for at in range(7)]
            gone = 7 - len(texts)
            assert texts == wanted[gone:], at
            assert gone == 0 or number == 1, at
            for text in texts[:1] + texts[-1:]:
                found = await log.query(TOPIC, f"key-{text}", 0, 1 << 40, 5)
                assert {one.data[4:].decode() for one in found} == {text}, at
        checked = await verify(provider)
        assert checked.problems == [], at
        assert checked.left_over == 0, at
        if "doomed" not in log.topics():
            left = [name for name in objects if name.startswith("doomed/")]
            # The log forgets a topic first; what is left goes when it is old enough.
            assert not left or ends.over, at
        covered = await listed(provider)
        assert covered.torn == covered.covered == [], at
        await log.close()
        return not ends.over

    async def all_steps() -> int:
        at = 1
        while not await one(at):
            at += 1
        return at

    steps = asyncio.run(all_steps())
    assert steps > 50
