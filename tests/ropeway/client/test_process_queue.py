"""The messages of one queue between broker and handlers."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from ropeway.client.message import MessageQueue, ReceivedMessage
from ropeway.client.process_queue import ProcessQueue

QUEUE = MessageQueue("t", "b", 0)


def message(offset: int, body: bytes = b"x") -> ReceivedMessage:
    return ReceivedMessage(
        topic="t", body=body, queue=QUEUE, queue_offset=offset, msg_id=str(offset),
        offset_msg_id="", message_id=0, tags=None, keys=(), properties={},
        reconsume_times=0, flag=0, sys_flag=0, born_ms=0, born_host=("127.0.0.1", 1),
        store_ms=0, store_host=("127.0.0.1", 1),
    )  # fmt: skip


def filled(count: int, max_messages: int = 100, max_bytes: int = 1000) -> ProcessQueue:
    queue = ProcessQueue(QUEUE, 0, max_messages, max_bytes)
    queue.put([message(offset) for offset in range(count)], count)
    return queue


@given(st.permutations(range(8)))
def test_the_safe_offset_is_the_smallest_unfinished_one(order):
    queue = filled(8)
    queue.take(8)
    left = set(range(8))
    for offset in order:
        queue.finish([message(offset)])
        left.discard(offset)
        assert queue.safe_offset == min(left, default=8)


def test_an_empty_queue_is_safe_up_to_where_pulling_goes_on():
    queue = ProcessQueue(QUEUE, 5, 10, 10)
    queue.put([], 40)
    assert queue.safe_offset == 40


def test_messages_that_are_put_back_come_first_again():
    queue = filled(4)
    taken = queue.take(2)
    queue.put_back(taken)
    assert [m.queue_offset for m in queue.take(9)] == [0, 1, 2, 3]


def test_there_is_no_room_above_a_limit_until_messages_are_finished():
    async def has_room(queue: ProcessQueue) -> bool:
        try:
            async with asyncio.timeout(0):
                await queue.wait_for_room()
        except TimeoutError:
            return False
        return True

    async def check() -> None:
        for queue in (filled(4, max_messages=3), filled(4, max_bytes=3)):
            assert not await has_room(queue)
            queue.finish(queue.take(1))
            assert await has_room(queue)

    asyncio.run(check())


def test_a_stopped_queue_gives_nothing_but_counts_what_is_in_hand():
    queue = filled(3)
    taken = queue.take(1)
    queue.stop()
    queue.put_back(taken)
    assert queue.take(9) == []
    queue.finish(taken)
    assert queue.safe_offset == 1
    assert not queue.dropped
