"""Patience: failed work is tried again when it may succeed."""

import asyncio
import math

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.node import backoff
from ropeway.gateway.node.backoff import Backoff
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError, LogUnavailableError, NotReadyError
from tests.remoting import until


class Opening:
    """A log that opens topics, or refuses to."""

    def __init__(self, refusal: LogError | None = None) -> None:
        self.opened: list[tuple[str, tuple[int] | None]] = []
        self._refusal = refusal

    async def ready(self, topic: str, numbers: tuple[int] | None) -> None:
        self.opened.append((topic, numbers))
        if self._refusal is not None:
            raise self._refusal


class Work:
    """Fails with what it is given, one after the other, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.tries = 0

    async def __call__(self) -> None:
        self.tries += 1
        if self._errors:
            raise self._errors.pop(0)


def insist(work: Work, opening: Opening) -> tuple[list[float], list]:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    with capture_logs() as logs:
        asyncio.run(Backoff("it waits", opening, pause).insist(work))
    return pauses, logs


def test_work_that_fails_is_done_again_after_a_pause_and_it_is_said():
    work = Work(LogUnavailableError("the disk is full"), RouteError("no ZooKeeper"))
    pauses, logs = insist(work, Opening())
    assert work.tries == 3
    assert pauses == [backoff.RETRY_S] * 2
    assert [one["reason"] for one in logs] == ["the disk is full", "no ZooKeeper"]
    assert {one["event"] for one in logs} == {"it waits"}


def test_where_a_topic_was_not_open_it_goes_on_as_soon_as_it_is():
    work = Work(NotReadyError("orders"), NotReadyError("orders", 7))
    opening = Opening()
    assert insist(work, opening) == ([], [])
    assert opening.opened == [("orders", None), ("orders", (7,))]
    assert work.tries == 3


def test_a_topic_that_cannot_be_opened_is_named():
    opening = Opening(LogUnavailableError("no Pulsar"))
    pauses, logs = insist(Work(NotReadyError("orders")), opening)
    assert pauses == [backoff.RETRY_S]
    assert (logs[0]["topic"], logs[0]["reason"]) == ("orders", "no Pulsar")


def test_an_error_that_nobody_foresaw_is_told_with_its_trace_and_waited_out():
    error = ValueError("a fault of this test")
    pauses, logs = insist(Work(error), Opening())
    assert pauses == [backoff.UNFORESEEN_S]
    (told,) = logs
    assert (told["event"], told["log_level"]) == ("it waits", "error")
    assert told["exc_info"] is error


def test_a_step_is_taken_again_and_again_whatever_one_fails_of(monkeypatch):
    monkeypatch.setattr(backoff, "UNFORESEEN_S", 0.001)
    later = Work(ValueError("a fault of this test"))
    steps = 0

    def at_once() -> None:
        nonlocal steps
        steps += 1
        if steps == 1:
            raise ValueError("another one")

    async def main():
        for step, is_over in (
            (later, lambda: later.tries > 2),
            (at_once, lambda: steps > 2),
        ):
            doing = asyncio.ensure_future(backoff.keep_doing("tests", 0.001, step))
            await until(is_over)
            doing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await doing

    with capture_logs() as logs:
        asyncio.run(main())
    assert [(one["what"], one["log_level"]) for one in logs] == [("tests", "error")] * 2


class Steps:
    """Counts steps, and says when the next one is due."""

    def __init__(self, next_s: float) -> None:
        self.count = 0
        self.next_s = next_s
        self.rest = backoff.Rest(lambda: self.next_s)

    def step(self) -> None:
        self.count += 1

    def begin(self) -> asyncio.Future[None]:
        return asyncio.ensure_future(
            backoff.keep_doing("tests", 0.001, self.step, self.rest.pause)
        )


@pytest.mark.parametrize(
    ("longest_s", "next_s"), [(3600.0, 0.0), (3600.0, 0.002), (0.002, math.inf)]
)
def test_a_rest_ends_when_something_is_due_and_is_never_long(
    longest_s, next_s, monkeypatch
):
    monkeypatch.setattr(backoff, "LONGEST_REST_S", longest_s)

    async def main():
        steps = Steps(next_s)
        doing = steps.begin()
        await until(lambda: steps.count > 3)
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)

    asyncio.run(main())


def test_a_rest_ends_when_something_comes(monkeypatch):
    monkeypatch.setattr(backoff, "LONGEST_REST_S", 3600.0)

    async def main():
        steps = Steps(math.inf)
        doing = steps.begin()
        for count in range(3):
            await asyncio.sleep(0.01)
            assert steps.count <= count
            steps.rest.wake()
            await until(lambda expected=count: steps.count == expected + 1)
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)

    asyncio.run(main())
