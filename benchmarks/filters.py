"""What SQL92 conditions cost: microseconds of CPU for a message that is looked at.

    $ python -m benchmarks.filters

The first figure is the condition alone, with finding the properties in the stored
message. The second is all that a pull does for a message which does not match, in the
cache of the newest messages of the embedded log. It takes a few seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ropeway.gateway.node import sql, subscriptions
from ropeway.gateway.wire import message, properties
from ropeway.storage.api import MAX_LOOKS, Filter
from ropeway.storage.file import FileLogSettings, open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.api import Partition

ROUNDS = 25
CALLS = 4000
COUNT = 32
"""Messages that a push consumer asks for."""

PAIRS = {
    "KEYS": "k-64384",
    "UNIQ_KEY": "FD0000000000000000000000000000022D834E0E2F2A68BC3E460000",
    "WAIT": "true",
    "TAGS": "TagA",
    "CLUSTER": "DefaultCluster",
    "price": "250",
    "rate": "1.25",
    "region": "eu-west",
    "vip": "true",
}
CONDITIONS = [
    "price > 100",
    "region = 'eu-west'",
    "price > 100 AND region = 'eu-west' AND TAGS IN ('TagA', 'TagB')",
    "price > 900 OR region = 'us' OR TAGS = 'TagC'",
    "rate > 1.0 AND region CONTAINS 'west' AND gone IS NULL",
    "price BETWEEN 100 AND 300 AND vip = TRUE AND region IS NOT NULL",
    "region > 5 AND price > 100 AND vip = TRUE",
]
"""The last one cannot be compared: eu-west is no number."""


def microseconds(call: Callable[[], object], calls: int, rounds: int) -> float:
    """CPU time of one call: the best of all rounds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(calls):
            call()
        best = min(best, time.thread_time() - began)
    return best / calls * 1e6


def stored() -> bytes:
    """One message as the log has it."""
    return message.encode(
        message.Message(
            topic="orders",
            queue_id=0,
            queue_offset=0,
            message_id=0,
            body=bytes(128),
            properties=properties.dump(PAIRS),
        )
    )


async def filled(directory: str) -> Partition:
    """A partition with as many messages as one read looks at."""
    log = open_log(Path(directory), FileLogSettings())
    await log.create("orders", [0])
    partition = log.partition("orders", 0)
    done = asyncio.Event()
    records = [(stored(), 0, ())] * MAX_LOOKS
    partition.append(records, 1, lambda _base, _error: done.set())
    await done.wait()
    return partition


async def measure(rounds: int) -> None:
    """Print a line for each condition."""
    record = memoryview(stored())
    with tempfile.TemporaryDirectory() as directory:
        partition = await filled(directory)
        for text in CONDITIONS:
            condition = sql.compile_condition(text)
            alone = microseconds(lambda: condition.accepts(record), CALLS, rounds)  # noqa: B023
            wanted = subscriptions.build(f"({text}) AND FALSE", "SQL92", 1).filter
            assert isinstance(wanted, Filter)

            def read() -> None:
                chunk = partition.read_now(0, COUNT, 1 << 22, wanted)  # noqa: B023
                assert chunk is not None
                assert (chunk.records, chunk.next_offset) == (0, wanted.looks)  # noqa: B023

            whole = microseconds(read, 1, rounds) / wanted.looks
            print(f"{text:68} {alone:6.2f} us  {whole:6.2f} us in a pull")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asyncio.run(measure(parser.parse_args().rounds))
