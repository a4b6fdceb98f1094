"""Requests that wait for their connection's turn: their order, and what counts them."""

from types import SimpleNamespace

import pytest

from ropeway.gateway.request_queue import RequestQueue
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode
from ropeway.gateway.wire.frame import JSON, FrameReader, encode_frame

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
def turns() -> Turns:
    return Turns(waiting=0, waiting_bytes=0)


def frames(count: int) -> list[tuple[int, bytes, bytes]]:
    return [(JSON, HEADER, BODY)] * count


def counted(turns: Turns, flow: Flow) -> tuple[int, int]:
    assert (turns.waiting, turns.waiting_bytes) == (flow.waiting, flow.waiting_bytes)
    return flow.waiting, flow.waiting_bytes


def test_what_came_first_is_begun_first_and_counts_until_it_is(turns: Turns):
    flow = Flow()
    queue = RequestQueue(turns, flow)
    assert not queue
    queue.add(frames(2))
    queue.add(frames(1))
    assert (len(queue), counted(turns, flow)) == (3, (3, 30))
    first = queue.first()
    next(first.frames)
    queue.begun(1)
    assert (queue.first(), counted(turns, flow)) == (first, (2, 30))
    next(first.frames)
    queue.begun(1)
    assert (len(queue), counted(turns, flow)) == (1, (1, 10))
    next(queue.first().frames)
    queue.begun(1)
    assert not queue
    assert counted(turns, flow) == (0, 0)


def test_what_is_refused_of_the_first_counts_no_more(turns: Turns):
    flow = Flow()
    queue = RequestQueue(turns, flow)
    queue.add(frames(3))
    kept = queue.keep_of_first(frames(1), refused=2)
    assert kept.late
    assert (queue.first(), len(queue), flow.waiting) == (kept, 1, 1)
    next(kept.frames)
    queue.begun(1)
    assert counted(turns, flow) == (0, 0)


def test_it_counts_in_the_flow_of_who_is_known_by_now(turns: Turns):
    unknown, known = Flow(), Flow()
    queue = RequestQueue(turns, unknown)
    queue.add(frames(2))
    queue.move_to(known)
    assert (unknown.waiting, unknown.waiting_bytes) == (0, 0)
    assert counted(turns, known) == (2, 20)
    queue.clear()
    assert counted(turns, known) == (0, 0)
    assert not queue


def test_only_what_is_done_for_who_has_left_is_left_behind(turns: Turns):
    flow = Flow()
    queue = RequestQueue(turns, flow)
    heartbeat, commit = FrameReader(1024, 1024).feed(
        encode_frame(RequestCode.HEART_BEAT, 1, flag=ONE_WAY_FLAG)
        + encode_frame(RequestCode.UPDATE_CONSUMER_OFFSET, 2, flag=ONE_WAY_FLAG)
    )
    queue.add([heartbeat, commit])
    assert queue.leave_behind() == [commit]
    assert counted(turns, flow) == (0, 0)
