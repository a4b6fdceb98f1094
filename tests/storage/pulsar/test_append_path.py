"""Ways in are closed when what is on its way is stored, and not much later."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from ropeway.storage.api import OutcomeUnknownError
from ropeway.storage.pulsar.append_path import drain, let_go
from tests.remoting import looped


class Way:
    """A way in with something on its way, or nothing."""

    def __init__(self, *, is_idle: bool = False) -> None:
        self.is_idle = is_idle
        self.stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failed: str | None = None
        self.closed = False

    async def drained(self) -> None:
        await self.stored

    def fail(self, reason: str) -> None:
        self.failed = reason

    async def close(self) -> None:
        assert self.failed
        self.closed = True


@looped
async def test_what_is_idle_is_not_waited_for():
    busy = Way()
    draining = asyncio.ensure_future(drain([busy, Way(is_idle=True)]))
    await asyncio.sleep(0)
    assert not draining.done()
    busy.stored.set_result(None)
    await draining
    await drain([])


@looped
async def test_all_are_closed_once_everything_is_stored():
    ways = [Way(), Way(is_idle=True)]
    ways[0].stored.set_result(None)
    await let_go(ways, "the end", 20)
    assert [one.failed for one in ways] == ["the end"] * 2
    assert all(one.closed for one in ways)


@looped
@pytest.mark.parametrize("error", [None, OutcomeUnknownError("who knows")])
async def test_what_is_not_acknowledged_keeps_none_open(error: Exception | None):
    ways = [Way(), Way(is_idle=True)]
    if error is not None:
        ways[0].stored.set_exception(error)
    with capture_logs() as logs:
        await let_go(ways, "the end", 0.05)
    assert all(one.closed for one in ways)
    assert [line["event"] for line in logs] == ["appends were not acknowledged"]
