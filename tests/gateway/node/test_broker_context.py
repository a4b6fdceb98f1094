"""What the parts of a broker stand on."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING

import pytest

from ropeway.common.clock import now_ms
from ropeway.gateway.node.broker_context import BrokerContext
from ropeway.gateway.node.node import monotonic_ms
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_popping_alone_goes_by_a_clock_that_nobody_sets(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        assert app.node.pop._clock is monotonic_ms
        assert app.node.transactions._now_ms is now_ms


def test_no_part_changes_what_the_others_stand_on():
    context = BrokerContext("broker-0", "c", None, None, None, None, bytes, now_ms)
    with pytest.raises(FrozenInstanceError):
        context.clock = monotonic_ms
