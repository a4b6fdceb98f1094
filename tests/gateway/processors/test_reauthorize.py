"""A request that waits and may no longer be done is refused once, if it still waits.

With real clients and rules: `tests/gateway/node/test_reauthorization.py`.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ropeway.gateway.node.reauthorization import Reauthorization
from ropeway.gateway.processors import reauthorize
from ropeway.gateway.processors.context import Refusal
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.remoting import looped, until

REFUSED = Refusal(ResponseCode.NO_PERMISSION, "no more")
ALLOWED = None


class Context:
    """A request that keeps how it failed."""

    code = RequestCode.GET_MAX_OFFSET
    envelope = object()
    rule_changes = 0

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        node = SimpleNamespace(guard=object(), reauthorization=Reauthorization())
        self.node = node

    def fail(self, error: Exception) -> None:
        self.failures.append(error)


def judged(monkeypatch: pytest.MonkeyPatch, verdict, *, later: bool) -> None:
    """Have all requests judged so, at once or later."""

    def settle():
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    async def admit(*_):
        if later:
            await asyncio.sleep(0)
        return settle()

    monkeypatch.setattr(reauthorize, "admit", admit)


@looped
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("verdict", "waits", "failures"),
    [(REFUSED, True, [REFUSED]), (REFUSED, False, []), (ALLOWED, True, [])],
)
async def test_who_may_not_any_more_is_refused_if_it_still_waits(
    monkeypatch: pytest.MonkeyPatch, later, verdict, waits, failures
):
    judged(monkeypatch, verdict, later=later)
    context, left = Context(), []

    def leave() -> bool:
        left.append(waits)
        return waits

    if (judging_on := reauthorize.judge_again(context, leave)) is not None:
        await judging_on
    assert context.failures == failures
    assert len(left) == (verdict is REFUSED)


def test_where_nothing_is_guarded_nobody_is_judged():
    context = Context()
    context.node.guard = None
    assert reauthorize.judge_again(context, lambda: pytest.fail("it left")) is None
    assert context.failures == []


@looped
async def test_a_task_that_waits_is_cancelled_and_one_that_does_not_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
):
    judged(monkeypatch, REFUSED, later=False)
    context = Context()
    interruptible = reauthorize.Interruptible(context)

    async def wait() -> None:
        with interruptible:
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    interruptible.judge()
    await until(task.done)
    assert task.cancelled()
    assert context.failures == [REFUSED]
    interruptible.judge()
    assert context.failures == [REFUSED]


@pytest.mark.parametrize("refused", [False, True])
def test_what_waits_without_a_task_leaves_once(
    monkeypatch: pytest.MonkeyPatch, refused
):
    judged(monkeypatch, REFUSED if refused else ALLOWED, later=False)
    context = Context()
    refusable = reauthorize.Refusable(context)
    assert len(context.node.reauthorization) == 1
    refusable.judge()
    assert context.failures == [REFUSED] * refused
    assert refusable.leave() is not refused
    refusable.judge()
    assert context.failures == [REFUSED] * refused
