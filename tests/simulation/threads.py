"""Threads that the loop runs: whichever the seed says, and for as long as it says.

A job of a `ThreadPoolExecutor` is a greenlet. It runs until it asks for the disk, lets
the loop go on there, and is taken up again after a time. So what the loop does then
comes between any two calls of the disk that a thread makes, as in earnest; and the
same seed brings the same order.
"""

from __future__ import annotations

import contextvars
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

from tests.simulation.loop import PROCESS, DeadProcessError, Process

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.simulation.loop import SimulatedLoop

BEGIN_S = (20e-6, 200e-6)
"""How long it takes until a thread that is free begins a job."""
LATE = 0.02
LATE_S = (1e-3, 50e-3)
"""How many jobs wait for a processor, and for how long."""


class Job(greenlet):
    """A function that a simulated thread calls, and its future."""

    def __init__(self, pool: Pool, work: Callable[[], Any]) -> None:
        super().__init__()
        self.pool = pool
        self.future: Future[Any] = Future()
        self._work = work
        self.gr_context = contextvars.copy_context()

    def run(self) -> None:
        """Call the function."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._work()
        except Exception as error:  # noqa: BLE001 - as a thread of a pool does
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def resume(self) -> None:
        """Go on until it waits again, or ends."""
        if self.dead:
            return
        self.switch()
        self.pool.took_up(self)


class Pool:
    """The jobs of one executor."""

    def __init__(self, threads: Threads, workers: int) -> None:
        self._threads = threads
        self._workers = workers
        self._waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.hurried = False
        """Whether somebody waits in the loop's thread for all jobs to end."""

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        job = Job(self, work)
        self._waiting.append(job)
        self._begin()
        return job.future

    def _begin(self) -> None:
        while self._waiting and len(self.running) < self._workers:
            job = self._waiting.popleft()
            self.running.append(job)
            assert job.gr_context is not None
            context = job.gr_context.copy()
            delay_s = self._threads.begin_s()
            self._threads.loop.call_later(delay_s, job.resume, context=context)

    def took_up(self, job: Job) -> None:
        """Note that a job has gone on; where it ended, the next one begins."""
        self._threads.took_up(job)
        if job.dead:
            self.running.remove(job)
            self._begin()

    def wait(self) -> None:
        """Return when all jobs have ended; in a thread, or in the loop's."""
        if self._threads.current() is not None:
            while self.running or self._waiting:
                self._threads.pause(1e-3)
            return
        self.hurried = True
        while self.running:
            self.running[0].resume()
        self.hurried = False


class Threads:
    """All threads of a run.

    Args:
        loop: What takes them up.
        chance: When.
    """

    def __init__(self, loop: SimulatedLoop, chance: random.Random) -> None:
        self.loop = loop
        self._chance = chance
        self._hub = getcurrent()
        self._begun: dict[Job, None] = {}
        """Jobs that began and have not ended: what they wait in, no collector sees."""
        self._default: dict[Process | None, ThreadPoolExecutor] = {}
        loop.default_pool = self._default_pool  # type: ignore[method-assign]

    def _default_pool(self) -> ThreadPoolExecutor:
        process = PROCESS.get()
        if process not in self._default:
            self._default[process] = ThreadPoolExecutor(8)
        return self._default[process]

    def pool(self, executor: ThreadPoolExecutor) -> Pool:
        """The simulated threads of an executor."""
        found: Pool | None = getattr(executor, "_simulated", None)
        if found is None:
            found = executor._simulated = Pool(self, executor._max_workers)  # type: ignore[attr-defined]
        return found

    def begin_alone(self, work: Callable[[], Any]) -> None:
        """Begin a thread of no pool."""
        Pool(self, 1).submit(work)

    def took_up(self, job: Job) -> None:
        """Note that a job goes on, or that it ended."""
        if job.dead:
            self._begun.pop(job, None)
        else:
            self._begun[job] = None

    def end(self) -> None:
        """Unwind all jobs that dead processes have left."""
        for job in [*self._begun]:
            with suppress(DeadProcessError):
                job.throw()
        self._begun.clear()

    def begin_s(self) -> float:
        """How long until a thread begins a job."""
        if self._chance.random() < LATE:
            return self._chance.uniform(*LATE_S)
        return self._chance.uniform(*BEGIN_S)

    def current(self) -> Job | None:
        """The job that is running; None in the loop's thread."""
        found = getcurrent()
        return found if isinstance(found, Job) else None

    def pause(self, seconds: float) -> None:
        """Have whoever calls wait: a thread lets the loop go on meanwhile."""
        job = self.current()
        if job is None:
            self.loop.block(seconds)
        elif not job.pool.hurried:
            context = contextvars.copy_context()
            self.loop.call_later(seconds, job.resume, context=context)
            self._hub.switch()
