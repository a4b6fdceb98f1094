"""When the requests of one connection are begun: at once, in its turns, or never.

Requests that come while others wait are kept in a `RequestQueue`, and begun in the
turns that the server's `FairQueue` gives. `FlowControl` says when nothing is begun or
read: while the client takes no answers, has too many requests in flight, or has used
up its quota. Fast failure refuses sends that would be begun too late.
"""

from __future__ import annotations

import time
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING

from ropeway.gateway.flow_control import FlowControl
from ropeway.gateway.node.fair_queueing import TURN_REQUESTS, hearing_s
from ropeway.gateway.processors.fast_failure import refuse_sends
from ropeway.gateway.request_queue import RequestQueue
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.write_buffer import WriteBuffer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.gateway.node.fair_queueing import FairQueue
    from ropeway.gateway.node.flow import Flow
    from ropeway.gateway.unauthenticated import Reader
    from ropeway.gateway.wire.frame import RawFrame
    from ropeway.gateway.write_buffer import Outbox

_TURNS_AHEAD = 2
"""Who has had a turn to read a large request has so many before others who have one:
for what had not come yet, and to begin it. Who sends it byte by byte waits again."""


class RequestScheduler(WriteBuffer):
    """What a connection has to begin, and in which turns; a connection is one.

    Args:
        outbox: Flushes what is answered, at the end of a tick.
        fair_queue: Gives connections their turns.
        flow: Whose turns the connection shares.
        requests_in_flight: How many of its requests may be worked on.
    """

    __slots__ = (
        *("_fair_queue", "_flow_control", "_hearing_s", "_queued", "_reader"),
        *("_reads_on_in", "_turns_ahead", "_waiting", "known"),
    )

    def __init__(
        self, outbox: Outbox, fair_queue: FairQueue, flow: Flow, requests_in_flight: int
    ) -> None:
        super().__init__(outbox)
        self._fair_queue = fair_queue
        self._flow_control = FlowControl(requests_in_flight)
        self._waiting = RequestQueue(fair_queue, flow)
        self._reader: Reader
        self._queued = False
        """Whether it will get a turn."""
        self._hearing_s = 0.0
        """What it took to hear it while others waited; it takes that from its turn."""
        self._reads_on_in = -1.0
        """The tick whose turn it has for reading a request to its end."""
        self._turns_ahead = 0
        """How often it goes on before others of its flow; less than 0: not now."""
        self.known = False

    # -- what is subclassed

    def _begin(
        self, frames: Iterable[RawFrame], until: float, waited_since: float = 0.0
    ) -> None:
        """Begin requests until a time: one in any case."""
        raise NotImplementedError

    def _distrust(self, error: FrameError) -> None:
        """End a connection whose stream cannot be understood any more."""
        raise NotImplementedError

    # -- requests that wait

    def _keep_heard(self, frames: list[RawFrame], size_bytes: int) -> None:
        """Let what came while others wait do so; hearing it is taken from its turn."""
        if not frames and self._reads_on_in == self._fair_queue.tick_began:
            return
        began = time.monotonic()
        self._keep(frames)
        self._hearing_s += hearing_s(size_bytes) + time.monotonic() - began

    def _keep(self, frames: list[RawFrame]) -> None:
        """Let requests, or without any reading on, wait for a turn; no late sends."""
        # Who is unknown would be kept out by what others send from its address.
        if self.known and (why := self._fair_queue.why_late(self.flow)):
            frames = self._refuse_sends(frames, why)
        if frames:
            self._waiting.add(frames)
        if not self._flow_control.paused:
            self._queue()
            self.pause_or_resume()

    def _refuse_sends(self, frames: Iterable[RawFrame], why: str) -> list[RawFrame]:
        others, answers = refuse_sends(frames, why)
        if answers:
            self.push(answers)
        return others

    def _queue(self) -> None:
        if not self._queued:
            self._queued = True
            self._fair_queue.join(self, goes_on=self._turns_ahead > 0)
            self._turns_ahead -= 1

    def take_turn(self, now: float, until: float) -> int:
        """Begin some of the requests that waited, and say how many."""
        if self.flow.storing_bytes:
            waiting = self._waiting
            reads = self._reader.missing_bytes
            size = waiting.first().size_bytes if waiting.count else reads
            # What waits for the log is still queued.
            if self._fair_queue.log_backlog.holds_back(self, size):
                return 0
        self._queued = False
        begun = self._begin_waiting(now, until) if self._waiting.count else 0
        if begun:
            self._turns_ahead = 0
        paused = self._flow_control.paused
        if self._waiting.count and not paused:
            self._queue()
        elif not paused and not self.closed and self._fair_queue.is_full(self.flow):
            # Who has much that waits does not begin to send more.
            self._queued = True
            self._fair_queue.hold_back(self)
        else:
            if self._reader.is_large:
                self._reads_on_in = self._fair_queue.tick_began
                if self._turns_ahead < 0:
                    self._turns_ahead = _TURNS_AHEAD
                expected_s = hearing_s(self._reader.missing_bytes)
                self._hearing_s = max(self._hearing_s, expected_s)
            # What it is heard for comes behind this tick.
            self._fair_queue.owed_s += self._hearing_s
            self._hearing_s = 0.0
        self.pause_or_resume()
        return begun

    def _begin_waiting(self, now: float, until: float) -> int:
        if self._flow_control.paused:
            return 0
        first = self._waiting.first()
        waited_s = now - first.at
        count = length_hint(first.frames)
        try:
            if waited_s > self._fair_queue.wait_s and self.known and not first.late:
                why = self._fair_queue.waited(waited_s)
                others = self._refuse_sends(first.frames, why)
                first = self._waiting.keep_of_first(others, count - len(others))
                count = len(others)
            # Who is unknown has a turn for the request that makes it known.
            most = TURN_REQUESTS if self.known else 1
            self._begin(islice(first.frames, most), until, first.at)
        except FrameError as error:
            self._distrust(error)
            return 0
        begun = count - length_hint(first.frames)
        self._waiting.begun(begun)
        return begun

    @property
    def flow(self) -> Flow:
        """Whose turns it shares."""
        return self._waiting.flow

    @property
    def has_large(self) -> bool:
        """Whether what it begins or reads next is large."""
        return (self._waiting if self._waiting.count else self._reader).is_large

    @property
    def waiting(self) -> int:
        """Requests that came and are not begun."""
        return self._waiting.count

    @property
    def in_flight(self) -> int:
        """Requests being worked on."""
        return self._flow_control.in_flight

    def _leave_turns(self) -> None:
        """The connection has ended; what is done though it has still gets its turns."""
        if self._fair_queue.log_backlog.forget(self):
            self._queued = False
        if frames := self._waiting.leave_behind():
            self._flow_control.paused = False
            self._keep(frames)
        self.flow.held_back.pop(self, None)

    # -- back-pressure

    def hold(self) -> None:
        """A request waits; it does not count as being worked on."""
        self._flow_control.in_flight -= 1
        if self._flow_control.paused:
            self.pause_or_resume()

    def unhold(self) -> None:
        """A waiting request goes on."""
        self._flow_control.in_flight += 1

    def drain(self) -> None:
        """Begin no more requests: only those in flight are still answered."""
        self._flow_control.draining = True
        self._waiting.clear()
        self.pause_or_resume()

    def pause_or_resume(self) -> None:
        """Begin requests and read more, or not, as things are now."""
        if self._transport is None or self.closed or self._transport.is_closing():
            return
        if self._flow_control.look() and self._waiting.count:
            self._queue()
        held_back = self.share is not None and self.share.held_back
        self._flow_control.read(self._transport, wanted=not (self._queued or held_back))
