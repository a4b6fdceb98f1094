"""Whose requests are begun when more come than can be worked on.

What comes is begun at once, until a tick has taken long enough. From then on
connections wait for their turn, and nothing is read from those that wait. Connections
of one principal, or of one address at which nobody is known, are a flow. Flows have
turns one after the other, and so have the connections within a flow, and each turn is a
few requests or a few milliseconds. So who asks for much does not hold up who asks for
little, on however many connections it does.

How long a request will wait is known from how many do in its flow, and how quickly
they went so far. When that is too long, sends are refused as they arrive; and those
that waited for too long after all, when their turn comes. What is beyond that waits in
the network.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import structlog

from ropeway.gateway.node.flow import Flow
from ropeway.gateway.node.log_backlog import LogBacklog
from ropeway.gateway.node.tick_length import TickLength

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Principal
    from ropeway.gateway.config import LimitsConfig
    from ropeway.gateway.node.flow import Waiting
    from ropeway.gateway.node.leadership import Leadership
    from ropeway.storage.api import Log

log = structlog.get_logger(__name__)

TURN_REQUESTS = 16
HEARING_S = 50e-6
"""What the network and the loop do for each time that a connection is heard."""
_HEARING_BYTE_S = 1e-9
"""And for each byte, until it is cut into requests."""
_TURN_S = 0.002
"""A turn ends after so long, too, whatever requests it began."""

_TICK_S = 0.01
"""After so long answers are written and others are heard, whatever waits."""

_FIRST_GUESS_S = 20e-6
"""What a request takes, until it is known: a single send and its share of a tick."""

_LARGE = 4
"""Requests that are inflated or decoded to more than a little, at a time: each may be
as long as a frame, and is there twice when it is decoded."""

_LEARNING = 0.25
"""The share of the last tick in what is known."""


def hearing_s(size: int) -> float:
    """Return about what it takes to hear so many bytes, in seconds."""
    return HEARING_S + size * _HEARING_BYTE_S


class Slices:
    """Long work on the loop, done in slices of a few milliseconds.

    Args:
        fair_queue: Who else waits.
        flow: Whose work it is.
        size_bytes: What it keeps in memory meanwhile.
    """

    __slots__ = ("_expected_s", "_queue", "_size_bytes", "_waits", "flow")
    has_large = False

    def __init__(self, fair_queue: FairQueue, flow: Flow, size_bytes: int = 0) -> None:
        self._queue = fair_queue
        self.flow = flow
        self._size_bytes = size_bytes
        self._expected_s = 0.0
        self._waits: asyncio.Future[None]

    async def pause(self, expected_s: float = _TURN_S) -> float:
        """Wait for a turn, unless its flow's last one is not over or nobody waits.

        Args:
            expected_s: How long it goes on then, about, until it is done or pauses.

        Returns:
            For how many seconds it waited.
        """
        began = time.monotonic()
        if began < self.flow.until or self._queue.is_free():
            return 0.0
        self._expected_s = expected_s
        self._waits = asyncio.get_running_loop().create_future()
        self._queue.join(self)
        with self.kept(self._size_bytes):
            await self._waits
        now = time.monotonic()
        self.flow.until = now + min(expected_s, _TURN_S)
        return now - began

    async def why_late(self) -> str:
        """Wait for a turn, and say why a send waited for too long; or else nothing."""
        waited_s = await self.pause()
        return self._queue.waited(waited_s) if waited_s > self._queue.wait_s else ""

    @contextmanager
    def kept(self, size_bytes: int) -> Iterator[None]:
        """Count what is kept in memory until the end of the block, besides.

        Args:
            size_bytes: What that is.
        """
        self._queue.keep(self.flow, size_bytes)
        try:
            yield
        finally:
            self._queue.keep(self.flow, -size_bytes)

    async def begin_large(self, more_bytes: int = 0) -> None:
        """Wait until few are at work on something large, and none of this flow.

        Args:
            more_bytes: What it keeps in memory meanwhile, besides what is known.
        """
        with self.kept(self._size_bytes + more_bytes):
            await self.flow.large.acquire()
            try:
                await self._queue.large.acquire()
            except BaseException:
                self.flow.large.release()
                raise

    def end_large(self) -> None:
        """Let others begin."""
        self._queue.large.release()
        self.flow.large.release()

    def take_turn(self, _now: float, _until: float) -> int:
        """Go on, behind this tick."""
        if not self._waits.done():
            self._queue.owed_s += self._expected_s
            self._waits.set_result(None)
        return 0

    def close(self) -> None:
        """Do not go on."""
        self._waits.cancel()


class FairQueue:
    """The connections whose requests wait, of all listeners of a server.

    Args:
        limits: How long sends, and how many bytes, may wait.
        log: Where sends go; while it is overdue, they are refused as they arrive.
        leadership: Looked after before anything is begun.
    """

    def __init__(self, limits: LimitsConfig, log: Log, leadership: Leadership) -> None:
        self._overdue_ms = log.overdue_ms
        self._leadership = leadership
        self.wait_s = limits.send_wait_ms / 1000
        self._limit_bytes = limits.waiting_bytes
        self.log_backlog = LogBacklog(log, limits.waiting_bytes, self.join)
        self._storing_bytes = log.waiting_bytes
        self._share_bytes = self.log_backlog.share_bytes
        self._loop = asyncio.get_running_loop()
        self._flows: dict[Flow, None] = {}
        """Those of which connections wait; the first is the next to have a turn."""
        self._known_flows: WeakValueDictionary[object, Flow] = WeakValueDictionary()
        self.tick_over_at = 0.0
        """When this tick has taken long enough; 0 until something has come in it."""
        self._free = True
        """Whether nobody waits, nor too much, here or in the log, nor the log is
        overdue; looked at once a tick."""
        self.tick_began = 0.0
        """When the last tick began in which connections had turns."""
        self._length = TickLength()
        self.owed_s = 0.0
        """What was begun in this tick will take behind it; who begins it adds that."""
        self._begun = 0
        """Requests begun in the last tick, of those that had waited, if some are left;
        a tick that had not enough to do says nothing of what a request takes."""
        self._each_s = _FIRST_GUESS_S
        """What a request takes, with all that is done meanwhile."""
        self.large = asyncio.Semaphore(_LARGE)
        """How many may be at work on something large."""
        self.sample_at = 0.0
        """When the next request is timed that is begun; who does it puts this off."""
        self.waiting = 0
        """Requests that wait, on all connections."""
        self.waiting_bytes = 0
        """Their bytes, and those of requests whose work pauses."""
        self._keeping = 0
        """Flows with such bytes."""
        self._held_back: dict[Flow, None] = {}
        """Flows with connections that are held back."""

    def keep(self, flow: Flow, size_bytes: int) -> None:
        """So much more of a flow waits; less, where it is negative."""
        before = flow.waiting_bytes
        flow.waiting_bytes += size_bytes
        self.waiting_bytes += size_bytes
        self._keeping += bool(flow.waiting_bytes) - bool(before)
        if size_bytes < 0 and self._held_back and not self.tick_over_at:
            self._begin_tick()

    def is_full(self, flow: Flow) -> bool:
        """Whether too much waits, and this flow has more than its share of it.

        Others read on: they wait for nobody who has as much as may be.
        """
        limit = self._limit_bytes
        return self.waiting_bytes > limit and flow.waiting_bytes * self._keeping > limit

    def why_full(self, flow: Flow) -> str:
        """Why no more of a flow's requests may wait; or else nothing."""
        if not self.is_full(flow):
            return ""
        allowed = self._limit_bytes // self._keeping
        waiting = f"{flow.waiting_bytes} bytes of requests wait"
        return f"flow limit: {waiting}; allowed: {allowed}"

    def hold_back(self, connection: Waiting) -> None:
        """Give a connection a turn when its flow is not full any more."""
        connection.flow.held_back[connection] = None
        self._held_back[connection.flow] = None

    def _let_go_on(self) -> None:
        for flow in [one for one in self._held_back if not self.is_full(one)]:
            del self._held_back[flow]
            held_back, flow.held_back = flow.held_back, {}
            for connection in held_back:
                self.join(connection)

    def flow(self, whose: Principal | str) -> Flow:
        """The flow of a principal or an address."""
        found = self._known_flows.get(whose)
        if found is None:
            found = self._known_flows[whose] = Flow()
        return found

    def why_late(self, flow: Flow) -> str:
        """Why a send that comes now could be too late; or else nothing."""
        delay_s = flow.waiting * self._each_s * (len(self._flows) or 1)
        if delay_s * 2 > self.wait_s:
            return self.waited(delay_s)
        if overdue_ms := self._overdue_ms():
            return f"the log has not stored a message that came {overdue_ms} ms ago"
        return ""

    def waited(self, seconds: float) -> str:
        """What a send is told that waits for a turn for so long."""
        allowed_ms = self.wait_s * 1000
        return f"sends wait for {seconds * 1000:.0f} ms; allowed: {allowed_ms:.0f}"

    def is_free(self) -> bool:
        """Whether what has just come may be begun at once."""
        if not self.tick_over_at:
            self._begin_tick()
            return self._free
        return self._free and time.monotonic() + self.owed_s < self.tick_over_at

    def join(self, connection: Waiting, *, goes_on: bool = False) -> None:
        """Give a connection a turn; in which place of its flow, `Flow.add` says."""
        flow = connection.flow
        flow.add(connection, goes_on=goes_on)
        self._flows[flow] = None
        if not self.tick_over_at:
            self._begin_tick()
        self._free = False

    def slices(self, whose: Principal | str, size_bytes: int = 0) -> Slices:
        """What long work for a principal, or an address, is done in."""
        return Slices(self, self.flow(whose), size_bytes)

    def _begin_tick(self) -> None:
        storing_bytes = self._storing_bytes()
        self._free = (
            self.waiting_bytes <= self._limit_bytes
            and storing_bytes <= self._share_bytes
            # Nothing can be overdue where nothing is stored.
            and not (storing_bytes and self._overdue_ms())
        )
        now, leadership = time.monotonic(), self._leadership
        if now > leadership.late_s or now > leadership.certain_until_s:
            leadership.check(now)
        self.tick_over_at = now + _TICK_S
        self._loop.call_soon(self._tick)

    def _tick(self) -> None:
        if self._held_back:
            self._let_go_on()
        if not self._flows:
            # A guess that is too high would refuse what could disprove it.
            self._each_s = _FIRST_GUESS_S
            self.tick_over_at = self.tick_began = self.owed_s = 0.0
            self._begun = 0
            self._length.ended_s = None
            return
        self.owed_s = 0.0
        now, leadership = time.monotonic(), self._leadership
        if now > leadership.late_s or now > leadership.certain_until_s:
            leadership.check(now)
        if self._begun:
            each_s = (now - self.tick_began) / self._begun
            self._each_s += (each_s - self._each_s) * _LEARNING
        self.tick_began = now
        self.tick_over_at = now + _TICK_S * self._length.begin()
        begun = 0
        self.log_backlog.look()
        while self._flows and now < self.tick_over_at:
            connection = self._next()
            # A turn in which its principal is known is still one of its address.
            flow = connection.flow
            begun += _give_turn(connection, now)
            self.log_backlog.turn_over(flow)
            now = time.monotonic() + self.owed_s
        self._begun = begun if self._flows else 0
        is_full = self.waiting_bytes > self._limit_bytes
        self._free = not (self._flows or is_full or self._overdue_ms())
        self._loop.call_soon(self._tick)
        self._length.end(self.owed_s)

    def _next(self) -> Waiting:
        flow = next(iter(self._flows))
        del self._flows[flow]
        connection = flow.next()
        if flow.waits:
            self._flows[flow] = None
        return connection


def _give_turn(connection: Waiting, now: float) -> int:
    try:
        return connection.take_turn(now, now + _TURN_S)
    except Exception:
        # As the event loop does where a connection fails to take what came: it ends
        # that one, and others have their turns.
        log.exception("connection closed: its turn failed")
        connection.close()
        return 0
