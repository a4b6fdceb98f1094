"""What somebody or something has taken: requests and bytes, by token buckets.

Nothing is refused or dropped for a rate: what came is worked on and counted. While an
account is overdrawn, connections that take of it are not read, and reads that can wait
do so; so the rate holds on average. An account has one timer, and only while something
is held back; a message costs none.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ropeway.gateway.config import QuotaConfig


class Held(Protocol):
    """A connection that can be held back."""

    def hold_back(self, account: Account) -> None:
        """Read nothing more, until the account lets it go on."""

    def go_on(self, account: Account) -> None:
        """Read again, unless another account is overdrawn, too."""


MAX_DEBT_S = 60.0
"""More is forgiven, or a limit far below the size of a message would stop its topic.
Clients whose heartbeats are not read for two minutes are taken for gone, and that one
has gone is not seen while nothing is read of it."""


class Bucket:
    """A token bucket; it may be overdrawn.

    Args:
        rate: Tokens a second.
        now_s: The time.
        burst: Tokens that it holds at most, and at first; None: a second's worth.
    """

    __slots__ = ("_at_s", "_burst", "_level", "_rate")

    def __init__(self, rate: float, now_s: float, burst: float | None = None) -> None:
        self._rate = rate
        self._burst = self._level = rate if burst is None else burst
        self._at_s = now_s

    def take(self, count: float, now_s: float) -> float:
        """Take tokens, there or not; seconds until the bucket is not overdrawn."""
        level = self._level + (now_s - self._at_s) * self._rate
        level = min(level, self._burst) - count
        self._level = max(level, -MAX_DEBT_S * self._rate)
        self._at_s = now_s
        return max(0.0, -self._level / self._rate)

    def try_take(self, now_s: float, count: int = 1) -> bool:
        """Take tokens if there are so many; whether there were."""
        self.take(0, now_s)
        if self._level < count:
            return False
        self._level -= count
        return True

    def is_full(self, now_s: float) -> bool:
        """Whether nothing distinguishes it from a new one."""
        self.take(0, now_s)
        return self._level == self._burst


class Account:
    """What was taken, of what may be taken.

    Args:
        whose: For people.
        quota: What may be taken.
    """

    def __init__(self, whose: str, quota: QuotaConfig) -> None:
        self._loop = asyncio.get_running_loop()
        self.whose = whose
        self.quota = quota
        self.throttled = 0
        """How often something was held back."""
        now_s = self._loop.time()
        rates = quota.requests_per_s, quota.bytes_per_s
        self._requests, self._bytes = (
            Bucket(rate, now_s) if rate else None for rate in rates
        )
        self._usual_bytes = quota.bytes_per_s or 0
        """What the last read has brought; of the first one, nobody knows it."""
        self._held_back: set[Held] = set()
        self._waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        """Those who came first, first."""
        self._is_passing = False
        """Whether one was let go on, who has not passed it on yet."""
        self._due: asyncio.TimerHandle | None = None

    @property
    def is_full(self) -> bool:
        """Whether nothing distinguishes its buckets from new ones."""
        now_s = self._loop.time()
        return all(one.is_full(now_s) for one in (self._requests, self._bytes) if one)

    @property
    def overdrawn(self) -> bool:
        """Whether more was taken than may be."""
        return self._take(0, 0) > 0

    def charge(self, held: Held, requests: int, size_bytes: int) -> None:
        """Count what a connection has taken, and hold it back where it is too much."""
        wait_s = self._take(requests, size_bytes)
        if wait_s > 0:
            if held not in self._held_back:
                self.throttled += 1
                self._held_back.add(held)
            held.hold_back(self)
            self._expect(wait_s)

    def begin_read(self, most_bytes: int) -> int:
        """Count a read before it is known what it brings; what was taken for it."""
        expected = min(most_bytes, self._usual_bytes)
        self._take(1, expected)
        return expected

    def end_read(self, expected_bytes: int, size_bytes: int) -> None:
        """Count what a read has brought instead; without any, it was none."""
        if size_bytes:
            self._usual_bytes = size_bytes
        wait_s = self._take(0 if size_bytes else -1, size_bytes - expected_bytes)
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._held_back or self._waiting:
            self._expect(wait_s)

    @property
    def waited_for(self) -> bool:
        """Whether others wait for it, who came before."""
        return bool(self._waiting)

    async def wait_until_even(self, timeout_s: float, *, again: bool = False) -> None:
        """Wait until it is not overdrawn any more, or nearly so long.

        One is let go on at a time, and has to `pass_on` then: it may take of the
        account or not.

        Args:
            timeout_s: How long to wait at most.
            again: Whether it has waited, and others took of the account meanwhile: then
                it is the next one.
        """
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting[waiting] = None
        if again:
            self._is_passing = False
            self._waiting.move_to_end(waiting, last=False)
        self._expect(self._take(0, 0))
        try:
            await asyncio.wait((waiting,), timeout=timeout_s)
        except asyncio.CancelledError:
            if waiting.done():
                self.pass_on()
            raise
        finally:
            if self._waiting.pop(waiting, 0) is None:
                self._rest()

    def pass_on(self) -> None:
        """Let the next one go on that waits, when the account is even."""
        self._is_passing = False
        if self._waiting:
            self._expect(self._take(0, 0))

    def take(self, requests: int, size_bytes: int) -> None:
        """Count what nobody can be held back for."""
        self._take(requests, size_bytes)

    def _take(self, requests: int, size_bytes: int) -> float:
        now_s = self._loop.time()
        wait_s = self._requests.take(requests, now_s) if self._requests else 0.0
        if self._bytes:
            wait_s = max(wait_s, self._bytes.take(size_bytes, now_s))
        return wait_s

    def _expect(self, wait_s: float) -> None:
        if self._due is None:
            self._due = self._loop.call_later(wait_s, self._look)

    def _look(self) -> None:
        self._due = None
        if wait_s := self._take(0, 0):
            # Answers have been counted meanwhile.
            self._expect(wait_s)
            return
        self._let_read()
        if self._waiting and not self._is_passing:
            self._is_passing = True
            first, _ = self._waiting.popitem(last=False)
            first.set_result(None)

    def _let_read(self) -> None:
        held_back, self._held_back = self._held_back, set()
        for held in held_back:
            held.go_on(self)

    def release(self) -> None:
        """Let everything go on: the account is no more."""
        self._let_read()
        waiting, self._waiting = self._waiting, OrderedDict()
        for one in waiting:
            one.set_result(None)
        self._rest()

    def leave(self, held: Held) -> None:
        """Forget a connection; what it has taken stays taken."""
        self._held_back.discard(held)
        self._rest()

    def _rest(self) -> None:
        if self._due is not None and not self._held_back and not self._waiting:
            self._due.cancel()
            self._due = None
