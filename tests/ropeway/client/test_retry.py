"""What is asked again while servers are away, how often, and for how long."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ropeway.client import (
    ConnectionFailedError,
    RemotingError,
    ResponseError,
    TopicNotFoundError,
)
from ropeway.client.retry import is_outage, through_outages
from ropeway.gateway.wire.codes import ResponseCode

AWAY = ConnectionFailedError("127.0.0.1:9876", "connection refused")


def asked(limit_s: float, *answers: RemotingError | str) -> tuple[object, list[float]]:
    """The last answer, and when each attempt was made, by a clock that is told."""
    times: list[float] = []
    left = list(answers)

    async def one() -> str:
        times.append(asyncio.get_running_loop().time())
        answer = left.pop(0)
        if isinstance(answer, RemotingError):
            raise answer
        return answer

    async def run() -> object:
        loop, now = asyncio.get_running_loop(), [0.0]
        loop.time = lambda: now[0]

        async def pause(seconds: float) -> None:
            now[0] += seconds

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(asyncio, "sleep", pause)
            try:
                return await through_outages(one, limit_s)
            except RemotingError as error:
                return error

    return asyncio.run(run()), times


def test_it_is_asked_again_with_longer_and_longer_waits() -> None:
    answer, times = asked(60, *[AWAY] * 7, "there")
    assert answer == "there"
    assert times == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1, 5.1, 7.1])


def test_an_outage_that_goes_on_is_the_error_and_is_logged_each_10_s(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    answer, times = asked(25, *[AWAY] * 99)
    assert answer is AWAY
    assert 25 <= times[-1] < 27
    said = [one.getMessage() for one in caplog.records]
    assert said[0] == (
        "waiting for servers for 0 s, of 25 s at most: 127.0.0.1:9876: connection "
        "refused"
    )
    assert len(said) == 3


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (AWAY, True),
        (ResponseError(ResponseCode.SYSTEM_BUSY, "", "a"), True),
        (ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, "", "a"), True),
        (ResponseError(ResponseCode.NO_PERMISSION, "", "a"), False),
        (TopicNotFoundError("topic 'a' does not exist"), False),
    ],
)
def test_what_a_server_refuses_is_no_outage(error: RemotingError, is_one: bool) -> None:
    assert is_outage(error) is is_one
    answer, times = asked(60, error, "there")
    assert (answer == "there", len(times)) == ((True, 2) if is_one else (False, 1))
