"""Faults: each is one function, found in a table by its kind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation import damage, pulsar_faults, route_faults

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.simulation.network import End
    from tests.simulation.node import Node
    from tests.simulation.plan import Fault
    from tests.simulation.world import World

AFTER_BAD_DISK_S = 1.0
"""How long after a disk works again a start that had begun may still fail."""
AFTER_FAILED_SYNC_S = 0.3
"""How long until somebody restarts a node whose disk failed: it is read-only."""


class Faults:
    """What does faults to nodes.

    Args:
        world: Where they are.
        nodes: The nodes; a fault's number says which it is about.
    """

    def __init__(self, world: World, nodes: list[Node]) -> None:
        self._world = world
        self._nodes = nodes
        self.count = 0
        """How many were done: one that found nothing to break is not counted."""

    async def run(self, faults: tuple[Fault, ...], began_s: float) -> None:
        """Do all faults at their times, and return when all are over."""
        doing = []
        for fault in faults:
            await asyncio.sleep(began_s + fault.at_s - self._world.loop.time())
            doing.append(asyncio.ensure_future(self._do(fault)))
        for one in doing:
            await one

    async def _do(self, fault: Fault) -> None:
        told = f"{fault.kind}  for {fault.for_s:.3f} s"
        if await self._done(fault):
            self.count += 1
        else:
            told += " (nothing to break)"
        self._world.trace.note("FAULT", f"{told}, of {fault.at_s:.3f} s")

    async def _done(self, fault: Fault) -> bool:
        if self._world.pulsar is not None:
            for node in self._nodes:
                node.may_not_start(fault.for_s)
        if (of_routes := route_faults.DOING.get(fault.kind)) is not None:
            return await of_routes(self._world, self._node(fault), fault)
        if (of_pulsar := pulsar_faults.DOING.get(fault.kind)) is not None:
            return await of_pulsar(self._world, self._node(fault), fault)
        return await DOING[fault.kind](self, fault)

    def end(self) -> None:
        """End all that lasts; a node that does not run is started."""
        self._world.network.heal()
        if self._world.zookeeper is not None:
            self._world.zookeeper.heal()
        if self._world.pulsar is not None:
            self._world.pulsar.heal()
        for node in self._nodes:
            machine = node.machine
            machine.full = machine.failing = machine.slow = False
            node.light()

    def _node(self, fault: Fault) -> Node:
        return self._nodes[fault.number % len(self._nodes)]

    # -- each kind; False where there was nothing to break

    async def _kill(self, fault: Fault) -> bool:
        node = self._node(fault)
        if node.process is None:
            return False
        node.kill()
        await asyncio.sleep(fault.for_s)
        node.start()
        return True

    async def _power(self, fault: Fault) -> bool:
        node = self._node(fault)
        if node.process is None:
            return False
        node.kill(power=True)
        await asyncio.sleep(fault.for_s)
        node.light()
        return True

    async def _stop(self, fault: Fault) -> bool:
        node = self._node(fault)
        if node.app is None:
            return False
        await node.stop()
        await asyncio.sleep(fault.for_s)
        node.start()
        return True

    async def _freeze(self, fault: Fault) -> bool:
        node = self._node(fault)
        process = node.process
        if process is None:
            return False
        self._world.loop.hold(process, fault.for_s)
        return True

    async def _busy(self, fault: Fault) -> bool:
        """Have others use its processor, too: it waits for it now and then."""
        process = self._node(fault).process
        if process is None:
            return False
        process.busy_until_s = self._world.loop.time() + fault.for_s
        return True

    async def _clock(self, fault: Fault) -> bool:
        node = self._node(fault)
        node.set_clock(fault.for_s)
        return True

    def _end_of(self, fault: Fault) -> End | None:
        ends = self._world.network.between(self._node(fault).host)
        return ends[fault.number % len(ends)] if ends else None

    async def _reset(self, fault: Fault) -> bool:
        end = self._end_of(fault)
        if end is None:
            return False
        end.peer.reset()
        end.reset()
        return True

    async def _half_open(self, fault: Fault) -> bool:
        end = self._end_of(fault)
        if end is None:
            return False
        deaf = end if fault.number % 2 else end.peer
        deaf.silent = True
        await asyncio.sleep(fault.for_s)
        # Whatever was between them has forgotten them both.
        for one in (end, end.peer):
            if not one.lost:
                one.reset()
        return True

    async def _cut(self, fault: Fault, *, inwards: bool) -> bool:
        end = self._end_of(fault)
        if end is None:
            return False
        client, host = end.process.host, self._node(fault).host
        ways = (client, host) if inwards else (host, client)
        self._world.network.cut(*ways, fault.for_s)
        return True

    async def _cut_in(self, fault: Fault) -> bool:
        return await self._cut(fault, inwards=True)

    async def _cut_out(self, fault: Fault) -> bool:
        return await self._cut(fault, inwards=False)

    async def _slow_reader(self, fault: Fault) -> bool:
        end = self._end_of(fault)
        if end is None:
            return False
        end.deaf_until_s = self._world.loop.time() + fault.for_s
        return True

    async def _slow_disk(self, fault: Fault) -> bool:
        node = self._node(fault)
        machine = node.machine
        machine.slow = True
        await asyncio.sleep(fault.for_s)
        machine.slow = False
        return True

    async def _full_disk(self, fault: Fault) -> bool:
        node = self._node(fault)
        machine = node.machine
        machine.full = True
        self._may_fail(fault)
        await asyncio.sleep(fault.for_s)
        machine.full = False
        return True

    def _may_fail(self, fault: Fault) -> None:
        node = self._node(fault)
        until_s = self._world.loop.time() + fault.for_s + AFTER_BAD_DISK_S
        node.may_fail_until_s = max(node.may_fail_until_s, until_s)

    async def _failing_sync(self, fault: Fault) -> bool:
        node = self._node(fault)
        machine = node.machine
        machine.failing = True
        self._may_fail(fault)
        await asyncio.sleep(fault.for_s)
        machine.failing = False
        await asyncio.sleep(AFTER_FAILED_SYNC_S)
        node.kill()
        node.start()
        return True

    async def _twin(self, fault: Fault) -> bool:
        node = self._node(fault)
        if node.app is None or node.process is None:
            return False
        # Whoever watches over it takes it for dead, and begins another.
        self._world.loop.hold(node.process, fault.for_s)
        await node.begin_twin()
        return True

    async def _flip(self, fault: Fault) -> bool:
        node = self._node(fault)
        if node.app is None:
            return False
        node.kill()
        flipped = damage.flip(node.machine, fault.number)
        if flipped is not None:
            node.damage = flipped
            node.start()
            await node.refuses()
            node.damage = None
            flipped.undo()
        node.start()
        return flipped is not None

    async def _rot(self, fault: Fault) -> bool:
        node = self._node(fault)
        if node.app is None:
            return False
        node.kill()
        rotten = damage.rot(node.machine, fault.number)
        if rotten is not None and rotten.is_in_journal:
            node.damage = rotten
            node.start()
            await node.refuses()
            node.damage = None
            rotten.undo()
        elif rotten is not None:
            node.verify(rotten)
            if not rotten.is_in_index:
                rotten.undo()
        node.start()
        return rotten is not None


DOING: dict[str, Callable[[Faults, Fault], Awaitable[bool]]] = {
    "kill": Faults._kill,
    "power": Faults._power,
    "stop": Faults._stop,
    "freeze": Faults._freeze,
    "busy": Faults._busy,
    "clock": Faults._clock,
    "reset": Faults._reset,
    "half_open": Faults._half_open,
    "cut_in": Faults._cut_in,
    "cut_out": Faults._cut_out,
    "slow_reader": Faults._slow_reader,
    "slow_disk": Faults._slow_disk,
    "full_disk": Faults._full_disk,
    "failing_sync": Faults._failing_sync,
    "twin": Faults._twin,
    "flip": Faults._flip,
    "rot": Faults._rot,
}
