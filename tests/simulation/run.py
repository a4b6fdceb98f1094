"""One run: a node, its clients and its faults, then peace, and a look at everything."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.gateway.node import names
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, GetMinOffset, Offset
from ropeway.gateway.wire.commands.pull import PullReply
from tests.remoting import Remoting
from tests.requests import pulling
from tests.simulation import clients, emptied, routes
from tests.simulation.clients import DEALS, GROUP, ORDERS, POPS, PORT, TIMED
from tests.simulation.faults import Faults
from tests.simulation.lateness import Lateness
from tests.simulation.loop import BEGAN_S, StuckError
from tests.simulation.model import Model, short
from tests.simulation.node import Clocks, Node
from tests.simulation.plan import CLIENTS
from tests.simulation.pulsar_brokers import Pulsar
from tests.simulation.quiet import SILENCE_S, quiet
from tests.simulation.raw_clients import KINDS
from tests.simulation.states import States
from tests.simulation.taps import Tap
from tests.simulation.world import World
from tests.simulation.zookeeper_servers import Ensemble

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.simulation.plan import Plan

    Bug = Callable[[], AbstractContextManager[object]]

CHECKED = ORDERS, POPS, TIMED, DEALS
"""Topics whose messages are what clients sent, where they sent them."""
RAM = Path("/dev/shm")
"""Where a run's files are, unless `TMPDIR` says where, as it does for tests."""
BACK_S = 30.0
"""Within this time after the last fault all has to work, and be done."""
OPEN_S = 10.0
"""Until then connections to Pulsar that nobody reset are given up, and partitions that
are not open, for who leads has just begun, are."""
LAST_S = 180.0
"""How long a run may take after its load, in simulated time."""


class Outcome(Struct):
    """What a run came to."""

    seed: int
    violations: list[str]
    checksum: str
    """Of all that happened: the same for the same plan."""
    faults: int = 0
    messages: int = 0
    acknowledged: int = 0
    stored: int = 0
    simulated_s: float = 0.0
    took_s: float = 0.0
    """Of a processor."""
    steps: int = 0
    timeline: list[str] = []


def run(plan: Plan, *, keep: bool = False, bug: Bug | None = None) -> Outcome:
    """Do what a plan says.

    Args:
        plan: What to do.
        keep: Whether the outcome has a timeline.
        bug: Makes the product wrong while the run lasts.
    """
    began = time.process_time()
    folder = RAM if RAM.is_dir() and "TMPDIR" not in os.environ else None
    scratch = Path(tempfile.mkdtemp(prefix="ropeway-sim-", dir=folder))
    try:
        with ExitStack() as stack:
            world = World(plan.seed, scratch, keep=keep)
            stack.enter_context(world.entered())
            if bug is not None:
                stack.enter_context(bug())
            one = Run(world, plan)
            longest_s = plan.load_s + LAST_S + one.longest_wait_s()
            try:
                world.loop.run_until_complete(asyncio.wait_for(one.all(), longest_s))
            except (StuckError, TimeoutError) as error:
                one.model.wrong(f"progress: {error!r}")
            outcome = one.outcome()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    outcome.took_s = time.process_time() - began
    return outcome


class Run:
    """A run in a world."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.world = world
        self.plan = plan
        self.model = Model(world.trace, world.loop.time)
        if plan.nodes > 1 or plan.log == "pulsar":
            chance = world.chance("zookeeper")
            world.zookeeper = Ensemble(world.network, chance)
        if plan.log == "pulsar":
            world.pulsar = Pulsar(world.network, world.chance("pulsar"))
            world.unsure = self.model.unsure
            states = States(world, self.model)
            world.leads, world.takes = states.leads, states.takes
        self.nodes = [
            Node(world, self.model, plan, number)
            for number in range(plan.nodes * plan.copies)
        ]
        self.brokers = self.nodes[:: plan.copies]
        """One node of each broker: the others send on what they are asked."""
        self.clocks = [
            Clocks(self.nodes[at : at + plan.copies])
            for at in range(0, len(self.nodes), plan.copies)
        ]
        self.model.spread_s = self._spread_s
        self.faults = Faults(world, self.nodes)
        kinds = {fault.kind for fault in plan.faults}
        is_refused = plan.log == "pulsar" or bool(kinds & {"full_disk", "failing_sync"})
        self.lateness = Lateness(self.model, self.clocks, is_refused=is_refused)
        self._firsts: dict[tuple[str, int], int] = {}
        self._read_to: dict[tuple[str, int], int] = {}
        """How far topics have been read that clients do not see as they are."""
        self.stored: dict[str, dict[int, list[tuple[int, bytes]]]] = {}
        self._taps: list[Tap] = []
        self._clients: list[asyncio.Task[None]] = []
        world.network.tap = self._tap
        if plan.flush == "sync" and plan.log == "embedded":
            world.network.shows = self._shows

    def _spread_s(self, queue_id: int, from_s: float, to_s: float) -> float:
        clocks = self.clocks[queue_id // clients.BROKER]
        return clocks.most_ahead_s(from_s, to_s) - clocks.least_ahead_s(from_s, to_s)

    def _shows(self, host: str, data: bytes) -> None:
        """See that a node shows a client nothing that a power loss could take."""
        for node in self.nodes:
            if node.host == host:
                for body in node.machine.unsynced.shown(data):
                    self.model.wrong(
                        f"visible: {short(body)} was shown before it was synced"
                    )

    def _tap(self) -> Tap:
        tap = Tap(self.model.wrong, self.world.loop.time)
        self._taps.append(tap)
        return tap

    def outcome(self) -> Outcome:
        """What it came to."""
        loop, model = self.world.loop, self.model
        for failure in loop.failures:
            model.wrong(f"callback: {failure}")
        return Outcome(
            self.plan.seed,
            list(model.violations),
            self.world.trace.checksum(),
            faults=self.faults.count,
            messages=len(model.sent),
            acknowledged=sum(one.acked_s > 0 for one in model.sent.values()),
            stored=sum(len(q) for one in self.stored.values() for q in one.values()),
            simulated_s=loop.time() - BEGAN_S,
            steps=loop.steps,
            timeline=self.world.trace.lines,
        )

    async def all(self) -> None:
        """Load, faults, peace, and the looks at everything."""
        loop, plan = self.world.loop, self.plan
        for node in self.nodes:
            node.start()
        await self._all_up()
        began_s = loop.time()
        load = clients.Load(
            *(self.world, self.model, began_s + plan.load_s, plan.pause_ms / 1000),
            [node.host for node in self.nodes],
            plan.copies,
        )
        self._begin(load)
        holding = asyncio.ensure_future(routes.hold(self.world, self.model, self.nodes))
        await self.faults.run(plan.faults, began_s)
        await asyncio.sleep(max(0.0, load.until_s - loop.time()))
        self.faults.end()
        self.world.trace.note("run", "no more faults")
        ended_s = loop.time()
        held_s = [node.process.held_until_s for node in self.nodes if node.process]
        try:
            await self._all_up()
        except TimeoutError:
            self.model.wrong(
                f"back: a node does not serve {BACK_S:.0f} s after the last fault"
            )
            return
        back_s = max(loop.time(), *held_s)
        if self.world.pulsar is not None:
            back_s += OPEN_S
        await routes.agree(self.world, self.model, self.nodes, ended_s + BACK_S)
        await self._until_done(ended_s + BACK_S)
        holding.cancel()
        load.done.set()
        await self._end_clients()
        await self._look()
        self._unanswered()
        self._late(back_s)
        if plan.empties:
            ends = self._read_to
            await emptied.check(self.world, self.model, self.nodes, plan.copies, ends)
        hosts = {node.host for node in self.nodes}
        for node in self.nodes:
            await quiet(self.world, self.model, node, hosts)
        for node in self.nodes:
            await asyncio.wait_for(node.stop(), BACK_S)

    async def _all_up(self) -> None:
        """Wait until all nodes serve.

        Raises:
            TimeoutError: One does not for long.
        """
        async with asyncio.timeout(BACK_S):
            for node in self.nodes:
                await node.up.wait()

    def _begin(self, load: clients.Load) -> None:
        number = 0
        for field in CLIENTS:
            for at in range(getattr(self.plan, field)):
                number += 1
                name = f"{field}-{at}"
                process = self.world.process(name, f"10.0.1.{number}")
                work = KINDS[field](load, name)
                self._clients.append(self.world.loop.spawn(process, work, name))

    async def _until_done(self, until_s: float) -> None:
        """Wait until groups have had all that is stored, or it is too late."""
        loop = self.world.loop
        wanted = []
        if self.plan.consumers:
            wanted += [(GROUP, topic) for topic in (ORDERS, TIMED, DEALS)]
        if self.plan.poppers:
            wanted.append(("poppers", POPS))
        longest_s = self.longest_wait_s() + until_s
        while True:
            await self._look_once()
            missing = [
                (group, body)
                for group, topic in wanted
                for body in self.model.missing(group, topic, self._bodies(topic))
            ]
            waiting = [
                body
                for body, sent in self.model.sent.items()
                if sent.must and body not in self._bodies(sent.topic)
            ]
            undecided = any(map(self.lateness.is_awaited, self.model.undecided))
            if not (missing or waiting or undecided):
                return
            if loop.time() > longest_s:
                for group, body in missing[:5]:
                    self.model.wrong(f"consumed: {group} has not had {short(body)}")
                return
            await asyncio.sleep(1.0)

    def longest_wait_s(self) -> float:
        """How long a message may wait for its time by a clock that was set back."""
        back_s = sum(
            abs(fault.for_s)
            for fault in self.plan.faults
            # Where a node is ahead, one that is not may have its messages next.
            if fault.kind == "clock" and (fault.for_s < 0 or self.plan.copies > 1)
        )
        return 6.0 + back_s

    def _bodies(self, topic: str) -> set[bytes]:
        return {body for q in self.stored.get(topic, {}).values() for _, body in q}

    async def _end_clients(self) -> None:
        if not self._clients:
            return
        done, late = await asyncio.wait(self._clients, timeout=BACK_S)
        for task in late:
            self.model.wrong(f"back: {task.get_name()} does not come to an end")
        for task in done:
            if (error := task.exception()) is not None:
                self.model.wrong(f"client: {task.get_name()}: {error!r}")

    async def _look_once(self) -> None:
        """Read all queues, as a client does."""
        process = self.world.process("looker", "10.0.2.1")
        task = self.world.loop.spawn(process, self._read_all())
        await asyncio.wait([task], timeout=BACK_S)
        if not task.done():
            self.model.wrong("back: queues cannot be read")
            task.cancel()
        elif (error := task.exception()) is not None:
            self.model.wrong(f"back: queues cannot be read: {error!r}")

    async def _read_all(self) -> None:
        for number, node in enumerate(self.brokers):
            client = Remoting(*await asyncio.open_connection(node.host, PORT))
            try:
                for topic in CHECKED:
                    for queue_id in range(clients.QUEUES):
                        await self._read(client, topic, queue_id, number)
                if self.plan.poppers:
                    await self._read(client, clients.RETRY_TOPIC, 0, number)
                if self.plan.transactions:
                    await self._read(client, names.GIVEN_UP_TOPIC, 0, number)
            finally:
                await client.close()

    async def _read(
        self, client: Remoting, topic: str, queue_id: int, broker: int
    ) -> None:
        there = broker * clients.BROKER + queue_id
        answer = await client.ask(GetMinOffset(topic=topic, queue_id=queue_id))
        if answer.code != ResponseCode.SUCCESS:
            return
        first = answer.read(Offset).offset
        answer = await client.ask(GetMaxOffset(topic=topic, queue_id=queue_id))
        end = answer.read(Offset).offset
        found = []
        if topic in CHECKED:
            found = self.stored.setdefault(topic, {}).setdefault(there, [])
            self._firsts.setdefault((topic, there), first)
        at = self._read_to.get((topic, there), first)
        while at < end:
            header = pulling(topic, at, queue_id=queue_id, group="lookers")
            answer = await client.ask(header)
            if answer.code != ResponseCode.SUCCESS:
                if not found and self.world.pulsar is not None:
                    # Its node may have looked only now what retention has deleted.
                    first, at = at, answer.read(PullReply).min_offset
                    self._firsts[topic, there] = self._read_to[topic, there] = at
                    if first < at:
                        continue
                self.model.wrong(
                    f"back: {topic}/{there} at {at} of {end} gives "
                    f"{answer.code}, {answer.remark}"
                )
                return
            messages = answer.messages()
            for one in messages:
                body = clients.body_of(one)
                found.append((one.queue_offset, body))
                now_s = self.world.loop.time()
                self.lateness.came(topic, body, broker, one.store_ms, now_s)
            self._read_to[topic, there] = at = messages[-1].queue_offset + 1

    async def _look(self) -> None:
        """Hold what is there against the model."""
        await self._look_once()
        if self.world.pulsar is not None:
            self.model.trimmed_s = self.world.pulsar.trimmed_s
        for topic, queues in self.stored.items():
            for queue_id, found in queues.items():
                if found and self.model.trimmed_s > 0:
                    # Its node may not have looked yet what retention has deleted.
                    self._firsts[topic, queue_id] = found[0][0]
                first = self._firsts[topic, queue_id]
                self.model.check_queue(topic, queue_id, first, found)
        self.model.check_all(self.stored, self._firsts)

    def _late(self, back_s: float) -> None:
        """See that what waited for its time came when it should."""
        model, lateness = self.model, self.lateness
        now_s = self.world.loop.time()
        lateness.check([*model.waiting, *model.undecided], back_s, now_s)
        # What cannot be stored again twice is tried again after half a minute, and
        # after a start it is due by the clock as that is then.
        refusing = {"slow_disk", "full_disk", "failing_sync"}
        kinds = {fault.kind for fault in self.plan.faults}
        if not refusing & kinds and not model.set_boots:
            lateness.check_popped(clients.RETRY_TOPIC, model.handed, back_s)

    def _unanswered(self) -> None:
        """See that what was asked on connections that live was answered."""
        before_s = self.world.loop.time() - clients.ANSWER_S
        nodes = {node.host for node in self.nodes}
        for end in self.world.network.ends:
            # What a node sends on may wait for one that lost its power.
            waits_s = SILENCE_S if end.process.host in nodes else 0.0
            for line in end.tap.late(before_s - waits_s) if end.tap is not None else ():
                self.model.wrong(line)
