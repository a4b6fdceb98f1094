"""What is told of lite topics: counts of messages, and who is behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.lite import views
from ropeway.gateway.lite.views import Lag
from tests.gateway.lite.rig import GROUP, PARENT, rigged
from tests.gateway.pop.rig import Clock
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SECOND_MS = 1000


@looped
async def test_messages_are_counted_for_each_lite_topic_by_itself(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        look = rig.lite.views
        assert look.topics_of(PARENT) == 0
        assert await look.size(PARENT, "a") == (0, 0)
        await rig.send("a", "0")
        await rig.send("b", "0", "1")
        clock.now_ms += SECOND_MS
        await rig.send("a", "1", "2")
        assert await look.size(PARENT, "a") == (3, clock.now_ms)
        assert await look.size(PARENT, "b") == (2, clock.now_ms - SECOND_MS)
        assert look.topics_of(PARENT) == 2
        assert look.topics_of("absent") == 0
        assert await look.size("absent", "a") == (0, 0)


@looped
async def test_a_position_says_what_is_done_and_how_old_the_rest_is(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        look = rig.lite.views
        begun_ms = clock.now_ms
        for body in "012":
            await rig.send("a", body)
            await rig.send("b", body)
            clock.now_ms += SECOND_MS
        assert await look.position(PARENT, "a", GROUP) is None
        assert await look.position(PARENT, "absent", GROUP) is None
        await rig.add("a")
        assert await look.position(PARENT, "a", GROUP) == (3, 0, begun_ms, 0)
        found = await rig.pop()
        # Those behind it are open, and count as not done.
        assert await rig.ack(found, 0) == 0
        later_ms = begun_ms + SECOND_MS
        assert await look.position(PARENT, "a", GROUP) == (3, 1, later_ms, begun_ms)
        for at in (1, 2):
            assert await rig.ack(found, at) == 0
        last_ms = later_ms + SECOND_MS
        assert await look.position(PARENT, "a", GROUP) == (3, 3, -1, last_ms)
        assert look.in_hand() == 1


@looped
async def test_lags_name_where_a_group_is_behind_by_most_and_for_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(views, "_COUNT_AT_ONCE", 2)
    monkeypatch.setattr(views, "_LOOK_AT_ONCE", 2)
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        begun_ms = clock.now_ms
        sent = {"old": 2, "nobody": 9, "long": 5, "done": 1, "new": 3}
        for number, (name, count) in enumerate(sent.items()):
            clock.now_ms = begun_ms + number * SECOND_MS
            await rig.send(name, *map(str, range(count)))
        await rig.add("done")
        assert await rig.ack(await rig.pop(), 0, "done") == 0
        await rig.add("old", "long", "new")
        look = rig.lite.views
        old = Lag("old", 2, begun_ms)
        long = Lag("long", 5, begun_ms + 2 * SECOND_MS)
        new = Lag("new", 3, begun_ms + 4 * SECOND_MS)
        every = await look.lags(PARENT, GROUP, 10)
        assert every == (10, [long, new, old], [old, long, new])
        assert await look.lags(PARENT, GROUP, 1) == (10, [long], [old])
        assert await look.lags(PARENT, "others", 10) == (0, [], [])
        assert await look.lags("absent", GROUP, 10) == (0, [], [])
