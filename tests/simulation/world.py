"""The world of one run: everything that product code asks its surroundings for.

`World` makes it from a seed; while it is `entered`, time, chance, threads, files and
the network are simulated for all code of this process.
"""

from __future__ import annotations

import asyncio
import builtins
import gc
import hashlib
import io
import itertools
import logging
import os
import random
import sqlite3
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import structlog

from ropeway.client import ids
from ropeway.common import system
from ropeway.gateway import server
from ropeway.gateway.connection import Connection
from ropeway.gateway.node import node as node_module
from ropeway.gateway.pop.in_flight import PopQueue
from ropeway.gateway.processors.context import Context
from ropeway.gateway.processors.pop import _Pop
from ropeway.gateway.processors.pull import _Pull
from ropeway.routing.zookeeper import session
from ropeway.routing.zookeeper.brokers import _Folder
from ropeway.storage.pulsar import appender
from ropeway.storage.pulsar.producer import Producer
from ropeway.storage.pulsar.rest import Rest
from ropeway.storage.pulsar.state import PulsarState
from tests.simulation import rocks
from tests.simulation.files import Files
from tests.simulation.loop import (
    BEGAN_S,
    PROCESS,
    DeadProcessError,
    Process,
    SimulatedLoop,
)
from tests.simulation.machine import Machine
from tests.simulation.network import Network
from tests.simulation.pulsar_rest import exchange
from tests.simulation.threads import Threads
from tests.simulation.zookeeper_client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from tests.simulation.pulsar_brokers import Pulsar
    from tests.simulation.zookeeper_servers import Ensemble

PID = 4242
UNWINDINGS = 12
_ABSENT = object()
WORLDS: WeakSet[World] = WeakSet()
"""Those of which something is left: after its run and a collection, nothing is."""
UNTRACKED = (Context, _Pull, _Pop)
"""Classes of requests in hand, which are declared with `gc=False`."""
IN_SETS = (Connection, PopQueue, _Folder)
"""Classes whose objects the product keeps in sets, and takes them from there."""


class Booted:
    """`gateway.node.node._BOOTED_MS`, which each process has of its own."""

    def __add__(self, elapsed_ms: int) -> int:
        process = PROCESS.get()
        return (process.booted_ms if process is not None else 0) + elapsed_ms


class Trace:
    """What has happened: a checksum of all of it, and lines for people.

    Args:
        loop: Its time.
        keep: Whether lines are kept.
    """

    def __init__(self, loop: SimulatedLoop, *, keep: bool) -> None:
        self._loop = loop
        self._keep = keep
        self._digest = hashlib.blake2b(digest_size=16)
        self.lines: list[str] = []
        self.events = 0

    def note(self, who: object, what: str) -> None:
        """Add a line."""
        line = f"{self._loop.time() - BEGAN_S:10.6f}  {who!s:10}  {what}"
        self.events += 1
        self._digest.update(line.encode(errors="backslashreplace") + b"\n")
        if self._keep:
            self.lines.append(line)

    def checksum(self) -> str:
        """A number for all lines so far."""
        return self._digest.hexdigest()


class World:
    """All that is simulated in one run.

    Args:
        seed: What everything that is left to chance comes from.
        scratch: A real directory, in memory, that is this run's alone.
        keep: Whether the trace is kept as lines.
    """

    def __init__(self, seed: int, scratch: Path, *, keep: bool = False) -> None:
        WORLDS.add(self)
        self.seed = seed
        self.scratch = scratch
        self.loop = SimulatedLoop()
        self.trace = Trace(self.loop, keep=keep)
        self.loop.chance = self.chance("processors")
        self.threads = Threads(self.loop, self.chance("threads"))
        self.network = Network(self.loop, self.chance("network"))
        self.machines: list[Machine] = []
        self.processes: list[Process] = []
        self.files = Files(self.threads, self.machines)
        self.zookeeper: Ensemble | None = None
        """Where the routes of several nodes are."""
        self.pulsar: Pulsar | None = None
        """Where the messages of nodes are, unless they keep them themselves."""
        self.leads: Callable[[PulsarState], None] = lambda _: None
        """Told when a node begins to write its broker's state."""
        self.takes: Callable[[str], None] = lambda _: None
        """Told of which partition a node asks Pulsar, to write to it."""
        self.unsure: Callable[[str], None] = lambda _: None
        """Told of which partition a node does not hear whether Pulsar has stored what
        it appended."""
        self.graveyard: list[Any] = []
        """What dead processes have left; it ends with the run, and not before."""
        self._numbers: dict[int, tuple[object, int]] = {}
        """Of objects in sets, by their addresses."""
        self._entropy = self.chance("entropy")

    def chance(self, purpose: str) -> random.Random:
        """Chance of its own for a purpose: what others draw does not change it."""
        return random.Random(f"{self.seed}/{purpose}")

    def machine(self, name: str) -> Machine:
        """A machine with an empty disk."""
        made = Machine(name, self.scratch / name, self.chance(f"disk of {name}"))
        self.machines.append(made)
        return made

    def process(self, name: str, host: str) -> Process:
        """A process that begins now."""
        process = Process(name, host)
        process.context.run(self._boot, process)
        self.processes.append(process)
        return process

    def _boot(self, process: Process) -> None:
        elapsed_ms = int(self.loop.time() * 1e9) // 1_000_000
        process.booted_ms = self.loop.wall_ns() // 1_000_000 - elapsed_ms

    def kill(self, process: Process, *, power: bool = False) -> None:
        """End a process at once: nothing that it has begun goes on."""
        process.alive = False
        self.graveyard.append(asyncio.all_tasks(self.loop))
        self.loop.drop(process)
        self.network.killed(process, power=power)
        self.files.killed(process)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have this process' code run in this world."""
        saved: list[tuple[Any, str, Any]] = []

        def patch(target: Any, name: str, value: Any) -> None:
            saved.append((target, name, target.__dict__.get(name, _ABSENT)))
            setattr(target, name, value)

        loop = self.loop
        monotonic_ns = partial(_ns, loop.time)
        patch(time, "monotonic", loop.time)
        patch(time, "perf_counter", loop.time)
        patch(time, "monotonic_ns", monotonic_ns)
        patch(time, "perf_counter_ns", monotonic_ns)
        patch(time, "time_ns", loop.wall_ns)
        patch(time, "time", lambda: loop.wall_ns() / 1e9)
        patch(time, "sleep", self.threads.pause)
        patch(os, "getpid", lambda: PID)
        patch(os, "urandom", self._entropy.randbytes)
        patch(random, "_urandom", self._entropy.randbytes)
        for name, function in self.files.patches().items():
            patch(os, name, function)
        patch(io, "open", self.files.io_open)
        patch(builtins, "open", self.files.io_open)
        patch(sqlite3, "connect", self.files.connect)
        patch(ThreadPoolExecutor, "submit", _submitting(self.threads))
        patch(ThreadPoolExecutor, "shutdown", _shutting_down(self.threads))
        for name, method in rocks.patches(self.files).items():
            patch(rocks.KIND, name, method)
        for kind in IN_SETS:
            patch(kind, "__hash__", _numbering(self._numbers))
        patch(server, "bind", self.network.listen)
        patch(Rest, "_exchange", exchange)
        patch(appender, "_now", loop.time)
        patch(PulsarState, "take_over", self._leading(PulsarState.take_over))
        patch(Producer, "_opening", self._taking(Producer._opening))
        patch(
            appender.Appender,
            "_answer_all",
            self._telling_which(appender.Appender._answer_all),
        )
        patch(session, "make_client", self._zookeeper_client)
        patch(session, "threading", SimpleNamespace(Thread=self._thread))
        patch(node_module, "_BOOTED_MS", Booted())
        patch(ids, "_clients", itertools.count())
        patch(ids, "local_address", self._address)
        patch(system, "boot_ns", monotonic_ns)
        # At the end, what dead processes have left says that it was not closed.
        patch(sys, "unraisablehook", lambda _: None)
        random.seed(self.seed)
        structlog.configure(processors=[self._log], cache_logger_on_first_use=False)
        logging.disable(logging.CRITICAL)
        collects = gc.isenabled()
        gc.disable()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
                self._end()
        finally:
            for target, name, value in reversed(saved):
                if value is _ABSENT:
                    delattr(target, name)
                else:
                    setattr(target, name, value)
            random.seed()
            structlog.reset_defaults()
            logging.disable(logging.NOTSET)
            if collects:
                gc.enable()

    def _telling_which(self, real: Any) -> Any:
        """`Appender._answer_all`, which tells of which partition it is."""

        def answer_all(one: appender.Appender, reason: str) -> None:
            self.unsure(one._name)
            real(one, reason)

        return answer_all

    def _leading(self, real: Any) -> Any:
        """`PulsarState.take_over`, which tells when it is done."""

        async def take_over(state: PulsarState) -> None:
            led = state.leading
            await real(state)
            if not led:
                self.leads(state)

        return take_over

    def _taking(self, real: Any) -> Any:
        """`Producer._opening`, which tells of partitions that are taken over."""

        def opening(one: Producer, place: Any) -> Any:
            if one._is_alone and not one._was_open:
                self.takes(one._topic)
            return real(one, place)

        return opening

    def _address(self) -> str:
        process = PROCESS.get()
        return process.host if process is not None else "127.0.0.1"

    def _zookeeper_client(self, _: Any, settings: Any, connected: Any) -> Client:
        process = PROCESS.get()
        assert process is not None
        assert self.zookeeper is not None
        return Client(self.zookeeper, process, settings.session_s, connected)

    def _thread(self, target: Any, **_: Any) -> Any:
        """Take the place of `threading.Thread`."""
        return SimpleNamespace(start=lambda: self.threads.begin_alone(target))

    def _log(self, _logger: Any, level: str, event: dict[str, Any]) -> str:
        if level in ("warning", "error", "critical", "exception"):
            said = "  ".join(f"{name}={value}" for name, value in event.items())
            said = said.replace(str(self.scratch), "")
            self.trace.note(PROCESS.get(), f"{level}: {said}")
        raise structlog.DropEvent

    def _end(self) -> None:
        """Let go of everything, while nothing of it can reach the real world."""
        for process in self.processes:
            process.alive = False
        loop = self.loop
        loop.set_exception_handler(lambda _loop, _context: None)
        # Coroutines that are unwound begin nothing more; not in a loop, either, that
        # asyncio would make for them and keep for ever.
        asyncio.set_event_loop(None)
        loop.call_soon = loop.call_at = loop.create_task = _refuse  # type: ignore[method-assign,assignment]
        loop._ready.clear()
        loop._scheduled.clear()
        self.graveyard.clear()
        self.zookeeper = self.pulsar = None
        self._numbers.clear()
        self.threads.end()
        _break_cycles()
        # What is unwound may wait once more, for the next round to find.
        for _ in range(UNWINDINGS):
            if not gc.collect():
                break
        self.files.close()
        self.loop.close()


def _break_cycles() -> None:
    """Empty what the collector does not look into, and so could never free.

    In a process that ends nobody misses it: these are requests that were in hand.
    """
    for one in gc.get_referents(*gc.get_objects()):
        if type(one) in UNTRACKED:
            for name in one.__struct_fields__:
                setattr(one, name, None)


def _submitting(threads: Threads) -> Any:
    """`ThreadPoolExecutor.submit`, on simulated threads."""

    def submit(executor: Any, work: Any, /, *args: Any, **more: Any) -> Future[Any]:
        return threads.pool(executor).submit(partial(work, *args, **more))

    return submit


def _shutting_down(threads: Threads) -> Any:
    """`ThreadPoolExecutor.shutdown`, likewise."""

    def shutdown(executor: Any, wait: bool = True, **_: Any) -> None:
        if wait:
            threads.pool(executor).wait()

    return shutdown


def _numbering(numbers: dict[int, tuple[object, int]]) -> Any:
    """A hash by when an object was first asked for it, and not by its address."""

    def number(one: object) -> int:
        return numbers.setdefault(id(one), (one, len(numbers)))[1]

    return number


def _refuse(*_: Any, **__: Any) -> Any:
    raise DeadProcessError


def _ns(clock: Any) -> int:
    return int(clock() * 1e9)
