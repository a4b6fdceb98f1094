"""What waits at a broker that is drained leaves it, once, and waits on elsewhere."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ropeway.gateway.node import backoff, names
from ropeway.gateway.wire import properties
from ropeway.storage.api import LogUnavailableError
from tests.gateway.node.timer.rig import START_MS, Clock, rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from ropeway.gateway.wire.commands.moves import DueMessages
    from ropeway.storage.api import LogError

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


class Taker:
    """Another broker, which stores whatever it is given while it is asked to."""

    def __init__(self) -> None:
        self.keeps_what_waits = True
        self.took: list[tuple[str, str]] = []
        self.refuses = False
        self.refused = 0

    def has(self, _topic: str) -> bool:
        return True

    async def store(self, due: DueMessages) -> LogError | None:
        if self.refuses:
            self.refused += 1
            return LogUnavailableError("not now")
        self.took += [
            (due.topic, properties.parse(text.decode())["UNIQ_KEY"])
            for _, text in due.messages
            if text is not None
        ]
        return None


@looped
async def test_what_waits_leaves_a_drained_broker_before_its_time_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backoff, "RETRY_S", 0.01)
    clock, taker = Clock(), Taker()
    async with rigged(tmp_path, clock) as rig:
        rig.send("soon", START_MS + 10)
        rig.send("late", START_MS + YEAR_MS)
        rig.send("recalled", START_MS + YEAR_MS)
        rig.recall("recalled", START_MS + YEAR_MS)
        await rig.at(START_MS + 10)
        taker.refuses = True
        rig.delivery.elsewhere = taker
        rig.send("later", START_MS + 2 * YEAR_MS)
        rig.timer.wake()
        # What is not taken stays.
        await until(lambda: taker.refused > 1)
        assert await rig.timer.count_waiting() > 0
        taker.refuses = False
        await rig.settled()
        wanted = [(names.TIMER_TOPIC, "late"), (names.TIMER_TOPIC, "later")]
        assert taker.took == wanted
        assert await rig.timer.count_waiting() == 0
        assert await rig.bodies() == ["soon"]
    # Whoever leads next knows, with an index or without, also an older one.
    for remove in (False, True):
        if remove:
            shutil.rmtree(tmp_path / "timer")
        async with rigged(tmp_path, clock) as rig:
            rig.delivery.elsewhere = taker
            await rig.settled()
            assert taker.took == wanted
    # A broker that stays after all keeps what comes.
    taker.keeps_what_waits = False
    async with rigged(tmp_path, clock) as rig:
        rig.delivery.elsewhere = taker
        rig.send("again", START_MS + DAY_MS)
        await rig.settled()
        assert await rig.timer.count_waiting() == 1
        await rig.at(START_MS + DAY_MS)
        assert await rig.bodies() == ["soon", "again"]
        await rig.at(START_MS + 3 * YEAR_MS)
        assert await rig.bodies() == ["soon", "again"]
    assert taker.took == wanted
