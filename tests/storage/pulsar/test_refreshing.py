"""How often partitions' oldest records are looked for, however many are open."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ropeway.storage.pulsar import upkeep as module
from ropeway.storage.pulsar.appender import Traffic
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.upkeep import Upkeep
from tests.remoting import looped
from tests.storage.pulsar.logs import until

if TYPE_CHECKING:
    import pytest


@looped
async def test_pulsar_is_not_asked_more_often_than_so_a_second_however_many_are_open(
    monkeypatch: pytest.MonkeyPatch,
):
    """10,000 idle partitions were 10,000 requests a minute."""
    monkeypatch.setattr(module, "REFRESHES_A_S", 50.0)
    way = SimpleNamespace(is_idle=True)
    partitions: list[Any] = [
        SimpleNamespace(appender=way, number=number, oldest_ledger=1)
        for number in range(10)
    ]
    asked: list[int] = []

    async def refresh(partition: Any) -> None:
        asked.append(partition.number)
        await asyncio.sleep(0)

    async def never(_: Any) -> None:
        raise AssertionError("begun anew")

    readers: Any = SimpleNamespace(close_idle=lambda _: None)
    settings = PulsarLogSettings(trim_check_s=0.01)
    began_s = time.monotonic()
    upkeep = Upkeep(
        *(settings, Traffic(1), readers, lambda: partitions),
        *(refresh, never, lambda _: None),
    )
    try:
        await until(lambda: len(asked) >= 11)
    finally:
        await upkeep.close()
    # All of them, one after the other; with the pause of a new round, 12 in all.
    assert asked[:11] == [*range(10), 0]
    assert time.monotonic() - began_s >= 11 / 50
