"""A real node on a simulated machine: started, stopped, killed, and without power."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import structs

from ropeway.gateway.app import App
from ropeway.gateway.config import (
    Config,
    ListenerConfig,
    LogConfig,
    PopConfig,
    TransactionsConfig,
    ZooKeeperConfig,
)
from ropeway.gateway.pulsar_config import PulsarConfig
from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.file.verify import verify
from tests.simulation import routes
from tests.simulation.clients import PORT
from tests.simulation.lateness import CHECKS, INTERVAL_MS, TIMEOUT_MS

if TYPE_CHECKING:
    from tests.simulation.damage import Damage
    from tests.simulation.loop import Process
    from tests.simulation.model import Model
    from tests.simulation.plan import Plan
    from tests.simulation.world import World

SESSION_MS = 2000
"""How long a node's session with ZooKeeper may be silent: less than some faults."""
KEEP_ALIVE_MS = 1000
PULSAR_S = 40.0
"""How long after Pulsar is well again a start that had begun may still fail."""
LONGEST_START_S = 30.0
AGAIN_S = 0.5
"""How long until a node that could not start is started again, as a supervisor does."""


class Node:
    """One node of the embedded log, over all its processes.

    Args:
        world: Where it is.
        model: Told how processes end.
        plan: Says how it flushes.
        number: Which of the cluster's nodes it is.
    """

    def __init__(self, world: World, model: Model, plan: Plan, number: int = 0) -> None:
        self._world = world
        self._model = model
        self._plan = plan
        alone = plan.nodes * plan.copies == 1
        self.name = "node" if alone else f"node{number}"
        self.host = f"10.0.0.{number + 1}"
        self.number = number // plan.copies
        """Which broker it is of."""
        self.broker = f"broker-{self.number}"
        self.machine = world.machine(self.name)
        self.process: Process | None = None
        self.app: App | None = None
        """None while it does not serve."""
        self._serving: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._count = 0
        self._ahead_ns = 0
        self._clocks: list[tuple[float, int]] = [(0.0, 0)]
        """Since when its time of day was how far ahead."""
        self._booted_ns = 0
        """What that was when the last process began."""
        self._twin: Process | None = None
        self.damage: Damage | None = None
        """What a start has to find and to refuse."""
        self.up = asyncio.Event()
        self.may_fail_until_s = 0.0
        """Until then it may refuse to start: its disk does not work."""

    def config(self) -> Config:
        """What it is told."""
        return Config(
            data=self.machine.root / "data",
            routes=self._routes(),
            zookeeper=ZooKeeperConfig(session_ms=SESSION_MS),
            broker=self.broker,
            pulsar=self._pulsar(),
            listeners=(ListenerConfig(host=self.host, port=PORT),),
            log=LogConfig(
                flush=self._plan.flush, segment_bytes=1 << 16, tail_cache_bytes=1 << 14
            ),
            pop=PopConfig(stay_ms=1500),
            transactions=TransactionsConfig(
                timeout_ms=TIMEOUT_MS, check_interval_ms=INTERVAL_MS, check_max=CHECKS
            ),
        )

    def _routes(self) -> str | None:
        servers = self._world.zookeeper
        return f"zookeeper://{servers.hosts}/ropeway" if servers is not None else None

    def _pulsar(self) -> PulsarConfig | None:
        pulsar = self._world.pulsar
        if pulsar is None:
            return None
        return PulsarConfig(
            service_url=pulsar.service_url,
            admin_url=pulsar.admin_url,
            keep_alive_ms=KEEP_ALIVE_MS,
        )

    def may_not_start(self, for_s: float) -> None:
        """A start that does not reach what it needs is given up, and begun again."""
        until_s = self._world.loop.time() + for_s + PULSAR_S
        self.may_fail_until_s = max(self.may_fail_until_s, until_s)

    def start(self) -> None:
        """Begin a process, unless one runs, or the machine has no power."""
        if self.process is not None or self._world.network.is_dark(self.host):
            return
        self._count += 1
        process = self._world.process(f"{self.name}.{self._count}", self.host)
        process.ahead_ns = self._ahead_ns
        if self._booted_ns != self._ahead_ns:
            self._model.set_boots.append(self._world.loop.time())
        self._booted_ns = self._ahead_ns
        process.context.run(self._world._boot, process)
        self.process = process
        self._stop = asyncio.Event()
        self._serving = self._world.loop.spawn(process, self._serve())
        self._serving.add_done_callback(self._ended)

    async def _serve(self) -> None:
        async with App(self.config()) as app:
            if self.damage is not None and self.damage.is_there:
                self._model.wrong(f"damage: it starts in spite of {self.damage}")
            self.app = app
            routes.follow(self._model, str(self.process), app.node.routes)
            self.up.set()
            self._world.trace.note(self.process, "serves")
            for line in app.found:
                self._world.trace.note(
                    self.process, line.replace(str(self.machine.root), "")
                )
            await app.run(self._stop)
            self.up.clear()
            self.app = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task is not self._serving:
            return
        process, self.process = self.process, None
        assert process is not None
        self.app, self._serving = None, None
        self.up.clear()
        error = None if task.cancelled() else task.exception()
        text = str(error).replace(str(self.machine.root), "") if error else ""
        self._world.trace.note(process, f"ended: {text}" if error else "stopped")
        self._world.kill(process)
        self._end_twin()
        if self.damage is not None and isinstance(error, LogDamagedError):
            self.damage.is_found = True
        elif error is not None:
            self._model.killed()
            if self._world.loop.time() > self.may_fail_until_s:
                self._model.wrong(f"start: {type(error).__name__}: {text}")
            self._world.loop.call_later(AGAIN_S, self.start)
        elif self._world.loop.time() <= self.may_fail_until_s:
            # The disk may have refused to have written down what was in hand.
            self._model.killed()

    def kill(self, *, power: bool = False) -> None:
        """End the process in the midst of whatever it does."""
        if self.process is None:
            return
        process, self.process = self.process, None
        self.app, self._serving = None, None
        self.up.clear()
        self._world.trace.note(process, "loses power" if power else "is killed")
        if power:
            self._model.lost_power(is_sync=self._plan.flush == "sync")
        else:
            self._model.killed()
        self._world.kill(process, power=power)
        self._end_twin()
        if power:
            kept = self.machine.lose_power()
            self._world.trace.note("disk", kept)

    def light(self) -> None:
        """Give the machine power, and begin a process."""
        self._world.network.lit(self.host)
        self.start()

    async def begin_twin(self) -> None:
        """Begin another process on the same directory: it has to be refused."""
        twin = self._twin = self._world.process(f"{self.name}.twin", self.host)
        task = self._world.loop.spawn(twin, self._serve_beside(self.process))
        while twin.alive and not task.done():  # noqa: ASYNC110 - it may be killed
            await asyncio.sleep(0.01)
        if twin.alive:
            self._end_twin()

    async def _serve_beside(self, first: Process | None) -> None:
        beside = ListenerConfig(host=self.host, port=PORT + 1)
        with suppress(LogError):
            async with App(structs.replace(self.config(), listeners=(beside,))):
                if self.process is first:
                    self._model.wrong(f"master: {first} and a twin have one directory")

    def _end_twin(self) -> None:
        twin, self._twin = self._twin, None
        if twin is not None:
            self._world.kill(twin)

    async def refuses(self) -> None:
        """Wait until a start has found the damage, or it is not there any more."""
        damage = self.damage
        assert damage is not None
        until_s = self._world.loop.time() + LONGEST_START_S
        while damage.is_there and not damage.is_found and not self.up.is_set():
            if self._world.loop.time() > until_s:
                self._model.wrong(f"damage: no start has found {damage}")
                return
            await asyncio.sleep(0.01)

    def verify(self, damage: Damage) -> None:
        """See that a check of the log, which is closed, finds what is damaged."""
        problems = verify(damage.path.parent).problems
        if not any(str(damage.path) in one for one in problems):
            self._model.wrong(f"damage: no check finds {damage}")

    async def stop(self) -> None:
        """Have the process end in order, and wait for it."""
        process = self.process
        self._stop.set()
        while process is not None and self.process is process:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def set_clock(self, by_s: float) -> None:
        """Set the time of day forwards or back."""
        self._ahead_ns += int(by_s * 1e9)
        self._clocks.append((self._world.loop.time(), self._ahead_ns))
        self._model.clocks.append(self._world.loop.time())
        if self.process is not None:
            self.process.ahead_ns = self._ahead_ns

    def now_s(self) -> float:
        """The loop's time."""
        return self._world.loop.time()

    def aheads_s(self, from_s: float, to_s: float) -> list[float]:
        """How far its time of day was ahead at a time, and since, until another."""
        before = [ns for since_s, ns in self._clocks if since_s <= from_s]
        then = [ns for since_s, ns in self._clocks if from_s < since_s <= to_s]
        return [ns / 1e9 for ns in (before[-1], *then)]


class Clocks:
    """The times of day of a broker's nodes, of which any may lead."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes

    @property
    def was_set(self) -> bool:
        """Whether one was ever set."""
        return any(len(node._clocks) > 1 for node in self._nodes)

    def most_ahead_s(self, from_s: float, to_s: float) -> float:
        """How far one was ahead between two times, at most."""
        return max(max(node.aheads_s(from_s, to_s)) for node in self._nodes)

    def least_ahead_s(self, from_s: float, to_s: float) -> float:
        """Likewise, at least."""
        return min(min(node.aheads_s(from_s, to_s)) for node in self._nodes)

    def set_back_s(self, from_s: float, to_s: float) -> float:
        """How far the time of day has been set back since it was looked at, at most.

        Args:
            from_s: When that may have been,
            to_s: at the latest.
        """
        now_s = self._nodes[0].now_s()
        return self.most_ahead_s(from_s, to_s) - self.least_ahead_s(now_s, now_s)
