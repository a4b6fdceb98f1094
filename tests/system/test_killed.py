"""A node that is killed while producers write: what it acknowledged is there after."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.remoting import looped
from tests.system.killed import kill_again_and_again

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@looped
@pytest.mark.parametrize("flush", ["sync", "async"])
async def test_what_was_acknowledged_before_a_kill_is_there_in_order_and_once(
    tmp_path: Path, flush: str
):
    """`async` too, for it is the process that dies and not the machine."""
    chance = random.Random(7)
    acknowledged, stored = await kill_again_and_again(tmp_path, flush, 2, chance)
    assert stored >= acknowledged >= 200
