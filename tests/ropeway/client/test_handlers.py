"""Users' handlers."""

import asyncio
import functools

import msgspec
import pytest

from ropeway.client import RETRY, ConsumeResult
from ropeway.client.handlers import Handlers
from tests.ropeway.client.test_process_queue import message


def run(handler, *, batch_size=None, timeout_s=30):
    handlers = Handlers(2, timeout_s)
    handlers.add("t", handler, batch_size)
    try:
        return asyncio.run(handlers.run([message(0)]))
    finally:
        handlers.close()


async def raises(_):
    raise KeyError("something")


def raises_in_a_thread(_):
    raise KeyError("something")


async def hangs(_):
    await asyncio.Event().wait()


async def says_retry(_):
    return RETRY


@pytest.mark.parametrize("handler", [raises, raises_in_a_thread, says_retry])
def test_failing_means_retry(handler):
    assert run(handler) is RETRY


def test_taking_too_long_means_retry():
    assert run(hangs, timeout_s=0.05) is RETRY


def test_anything_else_means_success():
    assert run(lambda _: None) is ConsumeResult.SUCCESS
    assert run(lambda m: m.queue_offset) is ConsumeResult.SUCCESS


def test_a_function_that_gives_something_awaitable_is_awaited():
    assert run(functools.partial(says_retry)) is RETRY


def test_a_message_without_a_handler_is_not_lost():
    handlers = Handlers(1, 1)
    assert asyncio.run(handlers.run([message(0)])) is RETRY
    handlers.close()


def test_batches_have_one_topic_and_a_size():
    handlers = Handlers(1, 1)
    handlers.add("t", print, 2)
    other = msgspec.structs.replace(message(9), topic="u")
    messages = [message(0), message(1), message(2), other, other, message(3)]
    sizes = [len(batch) for batch in handlers.batches(messages)]
    assert sizes == [2, 1, 1, 1, 1]
    handlers.close()


def test_a_batch_handler_gets_a_list_also_of_one():
    got = []
    run(got.append, batch_size=5)
    assert got == [[message(0)]]


def test_a_batch_of_none_is_refused():
    with pytest.raises(ValueError, match="batch_size 0; allowed: 1 or more"):
        run(print, batch_size=0)
