"""A commit that the log refuses changes nothing, and may come again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.transactions.end_records import End
from ropeway.storage.api import LogBusyError, OutcomeUnknownError
from tests.gateway.node.transactions.place import place
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


class Refusing:
    """A partition that refuses appends at once, or later."""

    def __init__(self, partition, error: Exception, *, later: bool) -> None:
        self._partition = partition
        self._error = error
        self._later = later

    @property
    def next_offset(self) -> int:
        return self._partition.next_offset

    def append(self, *append) -> None:
        if not self._later:
            raise self._error
        done = append[-1]
        asyncio.get_running_loop().call_soon(done, -1, self._error)


@looped
@pytest.mark.parametrize("error", [LogBusyError("busy"), OutcomeUnknownError("?")])
@pytest.mark.parametrize("later", [False, True])
async def test_a_commit_that_fails_leaves_the_transaction_open(
    tmp_path: Path, error: Exception, later: bool
):
    async with place(tmp_path) as one:
        offset = await one.send_half(b"x")
        served = one.app.node.topics.get("orders")
        kept = served.partitions[0]
        served.partitions[0] = Refusing(kept, error, later=later)
        with pytest.raises(type(error)):
            await one.end(offset, End.COMMITTED)
        served.partitions[0] = kept
        assert len(one.service) == 1
        await one.clock.advance(7000)
        assert len(one.asked) == 1
        assert await one.end(offset, End.COMMITTED)
        assert await one.bodies() == [b"first", b"x"]
