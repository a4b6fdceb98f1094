"""Requests that wait for their connection's turn: their order, and what counts them."""

from types import SimpleNamespace

import pytest

from ropeway.gateway.request_queue import RequestQueue
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from ropeway.gateway.wire.frame import (
    JSON,
    LARGE_BYTES,
    FrameReader,
    encode_frame,
)

HEADER, BODY = b"header", b"four"


class Flow:
    """What a flow counts."""

    def __init__(self) -> None:
        self.waiting = self.waiting_bytes = 0


class Turns(SimpleNamespace):
    """What all flows count together."""

    def keep(self, flow: Flow, size: int) -> None:
        flow.waiting_bytes += size
        self.waiting_bytes += size


@pytest.fixture
def fair_queue() -> Turns:
    return Turns(waiting=0, waiting_bytes=0)


def frames(count: int) -> list[tuple[int, bytes, bytes]]:
    return [(JSON, HEADER, BODY)] * count


def counted(fair_queue: Turns, flow: Flow) -> tuple[int, int]:
    assert (fair_queue.waiting, fair_queue.waiting_bytes) == (
        flow.waiting,
        flow.waiting_bytes,
    )
    return flow.waiting, flow.waiting_bytes


def test_what_came_first_is_begun_first_and_counts_until_it_is(fair_queue: Turns):
    flow = Flow()
    queue = RequestQueue(fair_queue, flow)
    assert not queue.count
    queue.add(frames(2))
    queue.add(frames(1))
    assert (queue.count, counted(fair_queue, flow)) == (3, (3, 30))
    first = queue.first()
    next(first.frames)
    queue.begun(1)
    assert (queue.first(), counted(fair_queue, flow)) == (first, (2, 30))
    next(first.frames)
    queue.begun(1)
    assert (queue.count, counted(fair_queue, flow)) == (1, (1, 10))
    next(queue.first().frames)
    queue.begun(1)
    assert not queue.count
    assert counted(fair_queue, flow) == (0, 0)


def test_what_is_refused_of_the_first_counts_no_more(fair_queue: Turns):
    flow = Flow()
    queue = RequestQueue(fair_queue, flow)
    queue.add(frames(3))
    kept = queue.keep_of_first(frames(1), refused=2)
    assert kept.late
    assert (queue.first(), queue.count, flow.waiting) == (kept, 1, 1)
    next(kept.frames)
    queue.begun(1)
    assert counted(fair_queue, flow) == (0, 0)


def test_it_counts_in_the_flow_of_who_is_known_by_now(fair_queue: Turns):
    unknown, known = Flow(), Flow()
    queue = RequestQueue(fair_queue, unknown)
    queue.add(frames(2))
    queue.move_to(known)
    assert (unknown.waiting, unknown.waiting_bytes) == (0, 0)
    assert counted(fair_queue, known) == (2, 20)
    queue.clear()
    assert counted(fair_queue, known) == (0, 0)
    assert not queue.count


def test_only_what_is_done_for_who_has_left_is_left_behind(fair_queue: Turns):
    flow = Flow()
    queue = RequestQueue(fair_queue, flow)
    heartbeat, commit = FrameReader(1024, 1024).feed(
        encode_frame(RequestCode.HEART_BEAT, 1, flag=ONE_WAY_FLAG)
        + encode_frame(RequestCode.UPDATE_CONSUMER_OFFSET, 2, flag=ONE_WAY_FLAG)
    )
    queue.add([heartbeat, commit])
    assert queue.leave_behind() == [commit]
    assert counted(fair_queue, flow) == (0, 0)


def test_a_request_is_large_by_itself_and_not_by_how_many_came_with_it(
    fair_queue: Turns,
):
    queue = RequestQueue(fair_queue, Flow())
    queue.add([(JSON, HEADER, bytes(LARGE_BYTES))])
    queue.add([(JSON, HEADER, bytes(LARGE_BYTES // 2))] * 4)
    assert queue.is_large
    next(queue.first().frames)
    queue.begun(1)
    assert not queue.is_large
