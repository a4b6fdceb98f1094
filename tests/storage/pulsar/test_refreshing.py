"""How often partitions' oldest records are looked for, however many are open."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.pulsar import upkeep as module
from ropeway.storage.pulsar.appender import Traffic
from ropeway.storage.pulsar.positions import Positions
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.upkeep import Upkeep
from tests.remoting import looped
from tests.storage.pulsar.logs import until

if TYPE_CHECKING:
    from collections.abc import Sequence

    Asked = tuple[list[int], float]


class Partition:
    """One that is open, and of which two ledgers are known."""

    def __init__(self, number: int, *, ledgers: int = 2, grown: int = 1) -> None:
        self.number = number
        self.appender = SimpleNamespace(is_idle=True)
        self.oldest_ledger = 1
        self.looked_end = 0
        self.end_offset = grown
        self.positions = Positions(4)
        self.positions.add(0, 0, ledgers, 0)


async def looked(partitions: Sequence[Any], trim_check_s: float, count: int) -> Asked:
    """Which were looked at, until so many were, and in how many seconds."""
    asked: list[int] = []

    async def refresh(partition: Any) -> None:
        asked.append(partition.number)
        # It is written to all the time, if it is at all.
        partition.end_offset += partition.end_offset > 0
        await asyncio.sleep(0)

    async def never(_: Any) -> None:
        raise AssertionError("begun anew")

    readers: Any = SimpleNamespace(close_idle=lambda _: None)
    settings = PulsarLogSettings(trim_check_s=trim_check_s)
    began_s = time.monotonic()
    ownership: Any = SimpleNamespace(
        traffic=Traffic(1), reopen=never, close_unused=lambda _: None
    )
    upkeep = Upkeep(settings, ownership, readers, lambda: list(partitions), refresh)
    try:
        await until(lambda: len(asked) >= count)
    finally:
        await upkeep.close()
    return asked[:count], time.monotonic() - began_s


@looped
async def test_pulsar_is_not_asked_more_often_than_so_a_second_however_many_are_open(
    monkeypatch: pytest.MonkeyPatch,
):
    """10,000 partitions were 10,000 requests a minute."""
    monkeypatch.setattr(module, "REFRESHES_A_S", 50.0)
    asked, took_s = await looked([*map(Partition, range(10))], 0.01, 11)
    # All of them, one after the other; with the pause of a new round, 12 in all.
    assert asked == [*range(10), 0]
    assert took_s >= 11 / 50


@pytest.mark.parametrize("how", [{"grown": 0}, {"ledgers": 1}])
@looped
async def test_idle_partitions_are_looked_at_rarely_and_do_not_delay_the_others(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, int]
):
    """A minute's 300 looks at such partitions were a fifth of what Pulsar did."""
    monkeypatch.setattr(module, "REFRESHES_A_S", 1e6)
    monkeypatch.setattr(module, "IDLE_A_ROUND", 4)
    idle = [Partition(number, **how) for number in range(1000)]
    asked, took_s = await looked(idle, 0.25, 6)
    assert asked == [*range(6)]
    assert took_s >= 6 * 0.05
    asked, _ = await looked([*idle, Partition(1000)], 0.25, 12)
    assert asked.count(1000) > 1
