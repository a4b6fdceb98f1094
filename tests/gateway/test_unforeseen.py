"""Faults of ours that nobody foresaw: what a node does all the time goes on."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway import backends, embedded
from ropeway.gateway.config import TierConfig
from ropeway.gateway.lite.follower import Follower
from ropeway.gateway.lite.service import Lite
from ropeway.gateway.node import backoff
from ropeway.gateway.node.batches.service import Batches
from ropeway.gateway.node.schedule import _LevelReader
from ropeway.gateway.node.timer.timer import Timer
from ropeway.gateway.node.transactions.service import Transactions
from ropeway.gateway.pop.ledger import Ledger
from ropeway.gateway.pop.service import Pop
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage.compaction import cleaner
from ropeway.storage.compaction.cleaner import Cleaner
from ropeway.storage.file import FileLog
from ropeway.storage.tiered.dispatcher import Dispatcher
from ropeway.storage.tiered.log import TieredLog
from ropeway.storage.tiered.tier_config import TieredSettings
from tests.remoting import looped, running, until

if TYPE_CHECKING:
    from pathlib import Path

PAUSE_S = 0.01
STEPS = [
    (Batches, "_rebuild"),
    (Cleaner, "look"),
    (Dispatcher, "round"),
    (EmbeddedRoutes, "_lose"),
    (FileLog, "expire"),
    (Follower, "_keep_up"),
    (Ledger, "open"),
    (Lite, "turn"),
    (Pop, "turn"),
    (TieredLog, "retire"),
    (Timer, "_round"),
    (Transactions, "_look"),
    (_LevelReader, "_deliver_due"),
]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long before another try."""
    monkeypatch.setattr(backoff, "UNFORESEEN_S", PAUSE_S)
    monkeypatch.setattr(backends, "_EXPIRE_EVERY_S", PAUSE_S)
    often = partial(TieredSettings, expire_every_ms=10)
    monkeypatch.setattr(embedded, "TieredSettings", often)
    monkeypatch.setattr(cleaner, "_LOOK_EVERY_S", PAUSE_S)


@pytest.mark.rule("README.md", "What a node does all the time")
@pytest.mark.parametrize(("owner", "step"), STEPS)
def test_a_step_that_fails_once_is_told_of_and_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, step: str
):
    original = getattr(owner, step)
    ended = []

    def failing(self, *given, **named):
        if not ended:
            ended.append("failed")
            raise ValueError("a fault of this test")
        result = original(self, *given, **named)
        ended.append("begun")
        return result

    async def failing_later(self, *given, **named):
        return await failing(self, *given, **named)

    wrapped = failing_later if inspect.iscoroutinefunction(original) else failing
    monkeypatch.setattr(owner, step, wrapped)

    @looped
    async def main():
        tier = TierConfig(url=f"file://{tmp_path}/tier")
        changes = {"tier": tier, "routes": str(tmp_path / "routes.db")}
        async with running(tmp_path, **changes):
            await until(lambda: ended[:2] == ["failed", "begun"])

    with capture_logs() as logs:
        main()
    (told,) = [one for one in logs if one["log_level"] == "error"]
    assert told["exc_info"]
