"""Who is told of openings that fail: each who waits, once, and nobody else."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import LogUnavailableError
from tests.remoting import looped, until
from tests.storage.pulsar.test_ownership import partition_of, patched

if TYPE_CHECKING:
    from ropeway.storage.pulsar.partition import PulsarPartition

__all__ = ["patched"]


@looped
async def test_openings_that_fail_are_told_once_and_never_by_the_event_loop(patched):
    """Of 200 that failed, 199 were tracebacks: exceptions that nobody retrieved."""
    rig = patched()
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))

    def refuse(_: PulsarPartition, _before: int) -> None:
        raise LogUnavailableError("not now")

    rig.meanwhile = refuse
    with pytest.raises(LogUnavailableError, match="not now"):
        await rig.own.open([partition_of(number) for number in range(3)])
    rig.gate.clear()
    waiting = asyncio.ensure_future(rig.own.open([partition_of()]))
    await until(lambda: len(rig.asked) == 4)
    waiting.cancel()
    rig.gate.set()
    await until(lambda: not rig.own._openings)
    gc.collect()
    assert told == []
