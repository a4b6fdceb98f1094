"""What holds a loop up is found, and named."""

import asyncio
import time
from collections import Counter
from pathlib import Path

from benchmarks import held
from benchmarks.pauses import latencies, pauses
from tests.remoting import until

LONG_S = 0.2


def burn() -> None:
    ends = time.thread_time() + LONG_S
    while time.thread_time() < ends:
        pass


def test_what_holds_a_loop_up_is_written_down(tmp_path: Path) -> None:
    file = tmp_path / "held"
    file.touch()

    async def work() -> None:
        watch = held.Watch(file, LONG_S / 2)
        await asyncio.sleep(0)
        burn()
        await until(lambda: file.read_text() != "")
        watch.close()

    asyncio.run(work())
    (found,) = held.read(file)
    assert found.ms >= LONG_S * 1000
    assert found.stack[0].startswith("benchmarks/test_pauses.py:burn:")
    assert f"| {found.stack[0]} < " in pauses(file)


def test_a_loop_that_nothing_holds_up_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "held").touch()
    assert "nothing above 20 ms" in pauses(tmp_path / "held")


def test_latencies_are_told_by_their_order() -> None:
    took = Counter({1: 980, 20: 15, 500: 4, 7000: 1, -1: 3})
    assert latencies(took).splitlines()[-1].split(" | ") == [
        *("| 1,000", "           3", "   0.1", "   2.0", "    50.0", "  700.0 |"),
    ]
