"""Which transactions are open, how others ended, and when to look at which.

A transaction is named by its *origin*: the offset of its half message. While it stays
open, its half message is appended again and again; *current* is the newest copy.

What is due is found by the second: nothing here goes over all open transactions.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.transactions.end_records import End

_SECOND_MS = 1000
_REMEMBERED = 65_536
"""Ended transactions whose end is known, so that asking again is answered rightly."""


class OpenTransactions:
    """The transactions of a broker.

    One that is open is *ending* while what ends it is on its way to the log, has
    *ended* once that is there, and is *finished* once a record of it is there, too.

    Args:
        floor: All half messages below this offset have ended, or have newer copies.
    """

    def __init__(self, floor: int = 0) -> None:
        self._floor = floor
        self._end = floor
        self._open: set[int] = set()
        self._moved: dict[int, int] = {}
        self._due: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
        self.wake: Callable[[], None] = lambda: None
        """Called when there is one more to look at."""
        self.ending: set[int] = set()
        """Origins of transactions whose end is on its way."""
        self._ended: dict[int, End] = {}
        self._finished: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, offset: int) -> bool:
        return offset in self._open

    def add(self, offset: int, origin: int, look_ms: int) -> None:
        """A half message was stored, or a newer copy of one.

        Args:
            offset: Where; each is above all those before.
            origin: Its transaction; for a new one the offset itself.
            look_ms: When to look at it.
        """
        if origin != offset:
            self._open.discard(self._moved.get(origin, origin))
            self._moved[origin] = offset
        self._open.add(offset)
        self._end = max(self._end, offset + 1)
        self.put_off(offset, look_ms)

    def current(self, origin: int) -> int | None:
        """The offset of the newest copy; None where the transaction is not open."""
        offset = self._moved.get(origin, origin)
        return offset if offset in self._open else None

    def ended(self, origin: int) -> End | None:
        """How a transaction ended; None where it is open, or that was long ago."""
        return self._ended.get(origin)

    def is_undecided(self, origin: int) -> bool:
        """Whether nothing has ended the transaction, or is about to."""
        return origin not in self.ending and origin not in self._ended

    def end(self, origin: int, how: End) -> None:
        """What ends the transaction is stored."""
        self.ending.discard(origin)
        self._ended[origin] = how

    def finish(self, origin: int, how: End) -> None:
        """The transaction has ended, and a record of that is stored."""
        self._open.discard(self._moved.pop(origin, origin))
        self._ended[origin] = how
        self._finished.append(origin)
        if len(self._finished) > _REMEMBERED:
            self._ended.pop(self._finished.popleft(), None)

    def drop(self, offset: int) -> None:
        """A half message is not in the log any more."""
        self._open.discard(offset)

    def put_off(self, offset: int, look_ms: int) -> None:
        """Look at a half message at another time: never earlier, at most 1 s later."""
        self._due[-(-look_ms // _SECOND_MS)].append(offset)
        self.wake()

    def take_due(self, now_ms: int) -> list[int]:
        """The offsets to look at now, in order; each comes once for a time to look."""
        ready = [second for second in self._due if second * _SECOND_MS <= now_ms]
        offsets: set[int] = set()
        for second in ready:
            offsets.update(self._due.pop(second))
        return sorted(offsets & self._open)

    @property
    def floor(self) -> int:
        """The lowest offset from which on half messages have to be read at a start."""
        while self._floor < self._end and self._floor not in self._open:
            self._floor += 1
        return self._floor
