"""What the parts of popping stand on."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING

import pytest

from ropeway.common.clock import now_ms
from ropeway.gateway.node.node import monotonic_ms
from ropeway.gateway.pop.context import PopContext
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_all_parts_of_popping_see_the_same_messages_in_hand(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        pop = app.node.pop
        for part in (pop.dispatch, pop.acks, pop._upkeep):
            assert part._in_flight is pop.in_flight
            assert part._polling is pop.polling
            assert part._clock is monotonic_ms is not now_ms
        assert pop.dispatch._book is pop.acks._book is pop.book
        assert pop.acks._ledger is pop._upkeep._ledger is pop.ledger


def test_no_part_of_popping_changes_what_the_others_stand_on():
    context = PopContext(None, None, None, None, None, None, None, None, None)
    with pytest.raises(FrozenInstanceError):
        context.broker = None
