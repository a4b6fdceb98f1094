"""The requests of one connection that have come and wait for its turn."""

from __future__ import annotations

import time
from collections import deque
from operator import length_hint
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.processors.fast_failure import left_behind
from ropeway.gateway.wire.frame import LARGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.node.fair_queueing import FairQueue
    from ropeway.gateway.node.flow import Flow
    from ropeway.gateway.wire.frame import RawFrame


class Arrived(NamedTuple):
    """Requests that came together and wait."""

    at: float
    """When, by `time.monotonic`."""
    frames: Iterator[RawFrame]
    size_bytes: int
    late: bool = False
    """Whether sends among them have been refused already."""


class RequestQueue:
    """Keeps requests in the order they came in, and counts them in their flow.

    Args:
        fair_queue: What all connections of the server wait for.
        flow: Whose requests these are.
    """

    __slots__ = ("_arrived", "_fair_queue", "_size_bytes", "count", "flow")

    def __init__(self, fair_queue: FairQueue, flow: Flow) -> None:
        self._arrived: deque[Arrived] = deque()
        self._size_bytes = 0
        self.count = 0
        """How many wait."""
        self._fair_queue = fair_queue
        self.flow = flow

    def add(self, frames: list[RawFrame]) -> None:
        """Have requests wait behind all others of the connection."""
        size = sum(len(header) + len(body) for _, header, body in frames)
        self._arrived.append(Arrived(time.monotonic(), iter(frames), size))
        self._add(len(frames), size)

    def first(self) -> Arrived:
        """Return what has waited for longest; whoever begins it calls `begun`."""
        return self._arrived[0]

    @property
    def is_large(self) -> bool:
        """Whether what has waited for longest is a large request, or some."""
        _, frames, size, _ = self._arrived[0]
        return size >= LARGE_BYTES and size >= LARGE_BYTES * length_hint(frames)

    def keep_of_first(self, frames: list[RawFrame], refused: int) -> Arrived:
        """Have only these wait on of the first, whose sends are refused by now."""
        came, _, size, _ = self._arrived[0]
        self._add(-refused, 0)
        kept = self._arrived[0] = Arrived(came, iter(frames), size, late=True)
        return kept

    def begun(self, count: int) -> None:
        """Forget so many of the first, which their iterator has given."""
        self._add(-count, 0)
        _, frames, size, _ = self._arrived[0]
        if not length_hint(frames):
            self._arrived.popleft()
            self._add(0, -size)

    def move_to(self, flow: Flow) -> None:
        """Count what waits in another flow from now on."""
        count, size = self.count, self._size_bytes
        self._add(-count, -size)
        self.flow = flow
        self._add(count, size)

    def clear(self) -> None:
        """Forget all."""
        self._add(-self.count, -self._size_bytes)
        self._arrived.clear()

    def leave_behind(self) -> list[RawFrame]:
        """Forget all, and return what is done though the client has left."""
        frames = left_behind(one.frames for one in self._arrived)
        self.clear()
        return frames

    def _add(self, count: int, size: int) -> None:
        self.count += count
        self._size_bytes += size
        self.flow.waiting += count
        self._fair_queue.waiting += count
        if size:
            self._fair_queue.keep(self.flow, size)
