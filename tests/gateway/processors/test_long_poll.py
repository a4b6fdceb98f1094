"""A request that waits is answered once, whatever ends its waiting."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ropeway.acl.api import Channel, Source
from ropeway.gateway.node.long_polling import LongPolling
from ropeway.gateway.processors import reauthorize
from ropeway.gateway.processors.context import LATER, Answer, Refusal
from ropeway.gateway.processors.long_poll import LongPoll
from ropeway.gateway.wire.codes import ResponseCode
from tests.remoting import looped, until

FOUND, OVER = Answer(remark="found"), Answer(remark="over")
FAULT = RuntimeError("what nobody foresaw")


class Request:
    """A request's context and its connection, as far as waiting needs them."""

    def __init__(self, guard: object = None) -> None:
        self.code, self.came_s, self.rule_changes = 11, 5.0, 0
        self.peer, self.closed, self.held = self, False, 0
        self.principal, self.source = None, Source("127.0.0.1", Channel.REMOTING)
        self.answers: list[object] = []
        self.again: list[LongPoll] = []
        again = SimpleNamespace(add=lambda one, _: self.again.append(one))
        self.node = SimpleNamespace(guard=guard, reauthorization=again)

    def hold(self) -> None:
        self.held += 1

    def unhold(self) -> None:
        self.held -= 1

    def answer(self, answer: Answer) -> None:
        self.answers.append(answer)
        if answer.code == ResponseCode.SYSTEM_ERROR:
            raise FAULT

    def fail(self, error: Exception) -> None:
        self.answers.append(error)

    def spawn(self, work) -> None:
        self.task = asyncio.create_task(work)


def waiting(request: Request, *looks, over=lambda: OVER, timeout_ms: int = 60_000):
    """Have a request wait that finds one thing after the other."""
    rest = iter(looks)

    def look():
        found = next(rest)
        if isinstance(found, Exception):
            raise found
        return found

    polling: LongPolling[str] = LongPolling(1)
    poll = LongPoll(request, look, over)
    assert poll.wait(polling, "key", (), timeout_ms)
    assert (request.held, request.came_s) == (1, 0.0)
    return polling, poll


async def read(found):
    await asyncio.sleep(0)
    return found


@looped
async def test_it_waits_until_there_is_something():
    request = Request()
    polling, _ = waiting(request, None, None, FOUND)
    for answered in (False, False, True):
        polling.wake("key")
        assert (request.answers, request.held) == (
            ([FOUND], 0) if answered else ([], 1)
        )
    assert len(polling) == 0


@looped
@pytest.mark.parametrize("found", [FOUND, LATER])
async def test_what_is_still_to_be_read_is_answered_when_it_is(found):
    request = Request()
    polling, _ = waiting(request, read(found))
    polling.wake("key")
    assert (request.answers, request.held, len(polling)) == ([], 0, 0)
    await request.task
    assert request.answers == ([] if found is LATER else [found])


@looped
async def test_a_fault_is_the_answer_and_so_is_one_of_the_answer_itself():
    request = Request()
    polling, _ = waiting(request, FAULT)
    polling.wake("key")
    assert (request.answers, request.held, len(polling)) == ([FAULT], 0, 0)
    request, failing = Request(), Answer(ResponseCode.SYSTEM_ERROR)
    polling, _ = waiting(request, failing)
    polling.wake("key")
    assert (request.answers, request.held) == ([failing, FAULT], 0)


@looped
async def test_its_time_is_up():
    request = Request()
    waiting(request, timeout_ms=1)
    await until(lambda: request.answers)
    assert (request.answers, request.held) == ([OVER], 0)


@looped
async def test_who_has_gone_or_is_one_too_many_does_not_wait():
    request, gone = Request(), Request()
    gone.closed = True
    polling, _ = waiting(request)
    for one in (gone, Request()):
        assert not LongPoll(one, None, None).wait(polling, "key", (), 60_000)
        assert (one.held, one.came_s) == (0, 5.0)
    polling.close()


@looped
async def test_who_may_not_have_it_any_more_is_refused_once(monkeypatch):
    refusal = Refusal(ResponseCode.NO_PERMISSION, "no more")

    async def admit(*_):
        raise refusal

    monkeypatch.setattr(reauthorize, "admit", admit)
    monkeypatch.setattr(reauthorize, "NEEDS", {11: None})
    request = Request(guard=object())
    polling, poll = waiting(request)
    assert request.again == [poll]
    for _ in range(2):
        assert poll.judge() is None
        assert (request.answers, request.held, len(polling)) == ([refusal], 0, 0)
