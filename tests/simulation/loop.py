"""The loop: one queue of callbacks for all simulated processes, and virtual time.

Laws:

* Time goes on only here: to the next timer when nothing is ready, by a little with each
  callback, and for one process alone where its code waits in the loop's thread.
* A callback belongs to the process in whose context it was scheduled. A dead process's
  callbacks are dropped, and those of one that stands still wait until it goes on.
* What is ready is called in the order in which it became ready, as asyncio promises.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from asyncio.base_events import BaseEventLoop
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

STEP_S = 2e-6
"""What a callback takes: so that who waits without sleeping sees time go on."""
WAITS, LONGEST_WAIT_S = 0.05, 20e-3
"""How often a busy machine's process waits for its processor, and how long at most."""
BEGAN_S = 1000.0
"""The loop's time at the start of a run."""
BEGAN_NS = 1_790_000_000_000_000_000
"""The time of day then."""
_EPSILON_S = 1e-9


class StuckError(Exception):
    """Nothing will ever happen again."""


class DeadProcessError(BaseException):
    """A process that was killed is still unwound: nothing that it does counts."""


class Process:
    """A simulated process, of a node or of clients: whether it runs, and its clocks.

    Args:
        name: For the timeline.
        host: Its address in the simulated network.
    """

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.alive = True
        self.held_until_s = 0.0
        """It stands still until then."""
        self.busy_until_s = 0.0
        """Until then others use its processor, too."""
        self.parked: list[asyncio.Handle] = []
        self.ahead_ns = 0
        """How far its time of day is ahead of everybody's."""
        self.booted_ms = 0
        """`gateway.node.node._BOOTED_MS` of this process."""
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)

    def __repr__(self) -> str:
        return self.name


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar(
    "process", default=None
)


class SimulatedTask(asyncio.Task[Any]):
    """A task whose place in a set is not chance: its address is.

    asyncio asks for it as it makes the task, which then is in the set of all tasks.
    """

    def __init__(self, number: int, work: Any, **given: Any) -> None:
        self.number = number
        super().__init__(work, **given)

    def __hash__(self) -> int:
        return self.number


class SimulatedFuture(asyncio.Future[Any]):
    """A future, likewise."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(BaseEventLoop):
    """An event loop without an operating system below it."""

    def __init__(self) -> None:
        super().__init__()
        self._now = BEGAN_S
        self._lag = 0.0
        """How long the callback that runs has waited in the loop's thread."""
        self.chance = random.Random(0)
        """When busy processes wait."""
        self.steps = 0
        self.most_steps = 5_000_000
        """After so many something turns in a circle."""
        self.failures: list[str] = []
        """What callbacks and tasks have raised that nobody took."""
        self.set_exception_handler(SimulatedLoop._note)
        self.set_task_factory(SimulatedLoop._task)
        self._tasks = self._timers = 0

    def _task(self, work: Any, context: contextvars.Context | None = None) -> Any:
        self._tasks += 1
        return SimulatedTask(self._tasks, work, loop=self, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        made = SimulatedFuture(loop=self)
        self._tasks += 1
        made.number = self._tasks
        return made

    def _note(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.failures.append(f"{context['message']}: {error!r}")

    # -- time

    def time(self) -> float:
        """The time of whoever asks."""
        return self._now + self._lag

    def block(self, seconds: float) -> None:
        """Have the process whose callback runs stand still, in the midst of it."""
        self._lag += seconds

    def wall_ns(self) -> int:
        """The time of day of whoever asks."""
        process = PROCESS.get()
        ahead_ns = process.ahead_ns if process is not None else 0
        return BEGAN_NS + int((self.time() - BEGAN_S) * 1e9) + ahead_ns

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function at a time: as asyncio does, with pairs that compare fast."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers += 1
        heapq.heappush(self._scheduled, (when, self._timers, timer))
        timer._scheduled = True
        return timer

    # -- processes

    def spawn(
        self, process: Process, work: Coroutine[Any, Any, Any], name: str | None = None
    ) -> asyncio.Task[Any]:
        """Begin a task of a process."""
        return self.create_task(work, name=name, context=process.context.copy())

    def hold(self, process: Process, seconds: float) -> None:
        """Have a process stand still for a time, and then go on as if nothing were."""
        until_s = max(process.held_until_s, self._now + seconds)
        process.held_until_s = until_s
        self.call_at(until_s, self._go_on, process, context=contextvars.Context())

    def _go_on(self, process: Process) -> None:
        if self._now + _EPSILON_S >= process.held_until_s:
            self._ready.extend(process.parked)
            process.parked.clear()

    def drop(self, process: Process) -> None:
        """Forget all callbacks of a process that is dead."""
        for handle in [*self._ready, *(one for _, _, one in self._scheduled)]:
            if handle._context.get(PROCESS) is process:
                handle.cancel()
        process.parked.clear()

    # -- what asyncio asks of a loop

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        if self._timer_cancelled_count > 100:
            self._sweep()
        while scheduled and scheduled[0][2]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)[2]._scheduled = False
        if not ready:
            if not scheduled:
                raise StuckError("nothing is ready, and nothing waits for a time")
            self._now = max(self._now, scheduled[0][0])
        if self.steps > self.most_steps:
            raise StuckError(f"{self.steps} callbacks, and no end")
        end = self._now + _EPSILON_S
        while scheduled and scheduled[0][0] <= end:
            handle = heapq.heappop(scheduled)[2]
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                self._call(handle)

    def _call(self, handle: asyncio.Handle) -> None:
        process = handle._context.get(PROCESS)
        if process is not None:
            if not process.alive:
                return
            if process.held_until_s > self._now + _EPSILON_S:
                process.parked.append(handle)
                return
        self.steps += 1
        self._now += STEP_S
        handle._run()
        if process is not None and process.busy_until_s > self._now:
            chance = self.chance
            if chance.random() < WAITS:
                self._lag += chance.random() ** 3 * LONGEST_WAIT_S
        if self._lag:
            lag, self._lag = self._lag, 0.0
            if process is not None:
                self.hold(process, lag)

    def _sweep(self) -> None:
        """Forget timers that were cancelled."""
        left = []
        for entry in self._scheduled:
            if entry[2]._cancelled:
                entry[2]._scheduled = False
            else:
                left.append(entry)
        heapq.heapify(left)
        self._scheduled[:] = left
        self._timer_cancelled_count = 0

    def _process_events(self, event_list: object) -> None:
        raise NotImplementedError

    def _write_to_self(self) -> None:
        """Nobody sleeps."""

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Have a simulated thread call a function."""
        if executor is None:
            executor = self.default_pool()
        return asyncio.wrap_future(executor.submit(func, *args), loop=self)

    def default_pool(self) -> Any:
        """The pool that a process has for `asyncio.to_thread`; see `threads`."""
        raise NotImplementedError
