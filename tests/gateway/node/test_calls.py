"""What clients are asked is answered, or fails once it cannot be any more."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.gateway.node.calls import Calls, ClientAnswer, NoAnswerError
from tests.remoting import looped, until


class Link:
    """A connection that notes what it is given."""

    language = "JAVA"
    version = 1
    address = "127.0.0.1:1"

    def __init__(self):
        self.pushed: list[bytes] = []

    def push(self, *data):
        self.pushed += data

    def close(self):
        raise AssertionError("nobody closes it")


def frame(opaque: int) -> bytes:
    return b"%d" % opaque


ANSWER = ClientAnswer(0, None, b"fine")


@looped
async def test_each_answer_goes_to_its_own_request():
    calls, link, other = Calls(), Link(), Link()
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(calls.ask(link, frame)) for _ in range(3)]
        await until(lambda: len(link.pushed) == 3)
        for data in reversed(link.pushed):
            # Numbers are this node's own: another connection's mean nothing.
            calls.answered(other, int(data), ClientAnswer(1, "not asked", b""))
            calls.answered(link, int(data), ClientAnswer(0, None, data))
    assert [one.result().body for one in asked] == link.pushed


@looped
async def test_a_client_that_goes_leaves_an_error_and_a_late_answer_nothing():
    calls, link = Calls(), Link()
    asked = asyncio.create_task(calls.ask(link, frame))
    await until(lambda: link.pushed)
    calls.disconnected(link)
    with pytest.raises(NoAnswerError, match=r"127\.0\.0\.1:1 has gone"):
        await asked
    calls.answered(link, int(link.pushed[0]), ANSWER)
    assert calls._open == {}


@looped
async def test_a_client_that_says_nothing_is_given_up():
    calls, link = Calls(), Link()
    with pytest.raises(NoAnswerError, match=r"did not answer within 0\.01 s"):
        await calls.ask(link, frame, 0.01)
    calls.answered(link, int(link.pushed[0]), ANSWER)
    assert calls._open == {}
