"""What of a log counts as waiting; a part of the contract of all logs."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any

from ropeway.storage.api import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.api import Log, LogError, Partition


def sized(size: int, *keys: str) -> Record:
    """A record of so many bytes, which says so."""
    return Record(struct.pack(">i", size) + bytes(size - 4), 0, keys)


class WaitingContract:
    """Laws of `storage.api.Log.waiting_bytes`."""

    run: Callable[..., None]
    """Runs a test on a log that has a topic `orders` of two partitions."""

    def test_what_is_appended_counts_as_waiting_until_it_is_done(
        self, open_log: Any
    ) -> None:
        async def test(log: Log) -> None:
            left = 3
            finished = asyncio.get_running_loop().create_future()

            def done(_: int, error: LogError | None) -> None:
                nonlocal left
                left -= 1
                if error is not None:
                    finished.set_exception(error)
                elif not left:
                    finished.set_result(None)

            def append(partition: Partition, record: Record) -> int:
                partition.append([record], 1000, done)
                return log.waiting_bytes()

            partition, other = log.partition("orders", 0), log.partition("orders", 1)
            assert log.waiting_bytes() == 0
            first = append(partition, sized(5))
            assert first >= 5
            second = append(partition, sized(10_000, "k"))
            assert second >= first + 10_000
            third = append(other, sized(10_000))
            assert third >= second + 10_000
            assert partition.appended_bytes == 10_005
            await finished
            assert log.waiting_bytes() == 0

        self.run(test, open_log)
