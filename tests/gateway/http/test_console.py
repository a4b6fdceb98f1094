"""Questions to brokers: all of them, at once, and what their errors are in words."""

import asyncio

import pytest

from ropeway.client.errors import (
    BadResponseError,
    ConnectionFailedError,
    ResponseError,
    TopicNotFoundError,
)
from ropeway.client.message import MessageQueue
from ropeway.gateway.http.console import AT_ONCE, Console, in_words
from ropeway.gateway.node.traffic import TOPIC_PUT_NUMS
from tests.gateway.http.site import send
from tests.remoting import looped, two_running


@looped
async def test_every_broker_that_a_question_concerns_is_asked(tmp_path):
    async with two_running(tmp_path) as [(first, one), (_, other)]:
        await send(one, "orders", 3)
        await send(other, "orders", 2)
        listener = first.server.listeners[0]
        async with Console(f"127.0.0.1:{listener.port}") as console:
            masters = await console.masters_by_name()
            assert list(masters) == ["broker-0", "broker-1"]
            assert await console.masters_by_name() is masters
            spans = await console.spans("orders", masters)
            assert {one.queue.broker_name: one.end for one in reversed(spans)} == {
                "broker-0": 3,
                "broker-1": 2,
            }
            counted = await console.counted(TOPIC_PUT_NUMS, "orders", masters)
            assert counted.rate > 0
            assert counted.day == 5
            assert await console.counted(TOPIC_PUT_NUMS, "none", masters) == (0, 0)
            queue = MessageQueue("orders", "broker-1", 0)
            found = await console.read(queue, 1, 5)
            assert [message.body for message in found] == [b"1"]
            assert await console.view_at("broker-1", 1 << 40, "orders") is None
            gone = MessageQueue("orders", "broker-9", 0)
            with pytest.raises(ConnectionFailedError, match="has no master"):
                await console.read(gone, 0, 1)


@looped
async def test_no_more_is_asked_at_once_than_is_good():
    running = most = 0

    async def work(number):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return number

    console = Console("127.0.0.1:1")
    done = await console.gather(work(number) for number in range(3 * AT_ONCE))
    assert done == list(range(3 * AT_ONCE))
    assert most == AT_ONCE


@looped
async def test_of_work_that_fails_the_error_is_what_a_caller_catches():
    async def fail():
        raise TopicNotFoundError("no name server knows it")

    with pytest.raises(TopicNotFoundError):
        await Console("127.0.0.1:1").gather([fail(), fail()])


def test_errors_are_told_in_words():
    for error, words in (
        (
            ResponseError(1, "it is full", "h:1"),
            "the broker at h:1 answered: it is full",
        ),
        (ResponseError(1, None, "h:1"), "the broker at h:1 answered: SYSTEM_ERROR"),
        (
            ConnectionFailedError("h:1", "errno 111"),
            "the broker at h:1 does not answer",
        ),
        (TopicNotFoundError("no name server ..."), "there is no such topic"),
        (BadResponseError("h:1: x"), "a broker's answer was not understood"),
    ):
        assert in_words(error) == words
