"""How long a page of what is out in order is kept: a day from its last use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.pop.order import UNUSED_MS
from tests.gateway.pop.rig import GROUP, TOPIC, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = UNUSED_MS // 24


@looped
@pytest.mark.parametrize("use", ["ack", "change"])
async def test_a_page_that_is_used_is_kept_for_a_day_from_then(tmp_path: Path, use):
    async with rigged(tmp_path) as rig:
        await rig.consumer.send(3)
        first = await rig.consumer.pop(order=True)
        rig.clock.now_ms += 23 * HOUR_MS
        if use == "ack":
            assert await rig.consumer.ack(first, 0) == 0
        else:
            assert (await rig.consumer.change(first.receipt(0), 0, 1000)).code == 0
        book, place = rig.pop.book, (GROUP, TOPIC, 0)
        book.clean(rig.clock() + 23 * HOUR_MS)
        assert book.get(place) is not None
        book.clean(rig.clock() + 25 * HOUR_MS)
        assert book.get(place) is None
