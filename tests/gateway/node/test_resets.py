"""Resets hold until a consumer has followed, whoever forgets them meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node.resets import TOLD_S, Resets, Step, is_reset
from ropeway.storage.file.offsets import open_offsets
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

NEAR, FAR = object(), object()
QUEUE = ("g", "orders", 0)


class Clock:
    """A clock that tests move."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@looped
async def test_pulls_are_led_until_one_comes_from_where_they_are_led(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    resets = Resets(offsets, Clock())
    resets.put("g", "orders", {0: 5, 1: 0})
    assert offsets.queues("g", "orders") == {0: 5, 1: 0}
    for _ in range(2):
        assert resets.step(*QUEUE, NEAR, 9) == (Step.MOVE, 5)
    assert resets.step("g", "orders", 2, NEAR, 9) == (Step.GO, 9)
    assert resets.step("h", "orders", 0, NEAR, 9) == (Step.GO, 9)
    assert resets.step(*QUEUE, NEAR, 5) == (Step.GO, 5)
    assert resets.step(*QUEUE, NEAR, 9) == (Step.GO, 9)
    assert resets.get("g", "orders", 1) is not None
    assert resets.step("g", "orders", 1, NEAR, 0) == (Step.GO, 0)
    assert not resets.pending
    assert list(offsets.groups()) == ["g"]
    await offsets.close()


@looped
async def test_a_client_with_old_messages_is_led_once_also_from_there(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    resets = Resets(offsets, Clock())
    resets.put("g", "orders", {0: 5}, untold=frozenset({NEAR}))
    assert resets.step(*QUEUE, NEAR, 5) == (Step.MOVE, 5)
    assert resets.step(*QUEUE, NEAR, 5) == (Step.GO, 5)
    resets.put("g", "orders", {0: 5}, untold=frozenset({NEAR}))
    assert resets.step(*QUEUE, FAR, 5) == (Step.GO, 5)
    await offsets.close()


@looped
async def test_a_client_that_was_told_is_given_time(tmp_path: Path):
    offsets, clock = open_offsets(tmp_path), Clock()
    resets = Resets(offsets, clock)
    resets.put("g", "orders", {0: 5}, told=frozenset({NEAR}))
    assert resets.step(*QUEUE, NEAR, 9)[0] is Step.WAIT
    assert resets.step(*QUEUE, FAR, 9)[0] is Step.MOVE
    clock.now_s = TOLD_S
    assert resets.step(*QUEUE, NEAR, 9)[0] is Step.MOVE
    assert resets.step(*QUEUE, NEAR, 5)[0] is Step.GO
    await offsets.close()


@looped
async def test_what_is_not_done_outlives_a_restart(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    resets = Resets(offsets, Clock())
    resets.put("g", "orders", {0: 5, 1: 7}, told=frozenset({NEAR}))
    resets.put("g", "parcels", {0: 1})
    assert resets.step("g", "orders", 1, NEAR, 7)[0] is Step.GO
    assert resets.step("g", "parcels", 0, NEAR, 1)[0] is Step.GO
    await resets.give_up()
    assert not resets.pending
    await offsets.close()
    offsets = open_offsets(tmp_path)
    resets = Resets(offsets, Clock())
    await resets.take_over()
    assert resets.step("g", "orders", 1, FAR, 9) == (Step.GO, 9)
    assert resets.step(*QUEUE, FAR, 9) == (Step.MOVE, 5)
    assert list(resets.pending) == [("g", "orders")]
    await offsets.close()


@looped
async def test_resets_go_with_their_group_and_their_topic(tmp_path: Path):
    offsets = open_offsets(tmp_path)
    resets = Resets(offsets, Clock())
    for group in ("g", "h"):
        for topic in ("a", "b"):
            resets.put(group, topic, {0: 1})
    resets.forget(group="g")
    assert list(resets.pending) == [("h", "a"), ("h", "b")]
    resets.forget(topic="a")
    assert list(resets.pending) == [("h", "b")]
    assert [one for one in offsets.groups() if is_reset(one)] == ["reset:h"]
    await offsets.close()
