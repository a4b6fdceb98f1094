"""What has to hold of a broker's state on Pulsar when a node begins to write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.pulsar.entry import Entry
from ropeway.storage.pulsar.state_entry import decode
from ropeway.storage.pulsar.state_replica import Facts
from tests.simulation.loop import PROCESS

if TYPE_CHECKING:
    from ropeway.storage.pulsar.state import PulsarState
    from tests.simulation.loop import Process
    from tests.simulation.model import Model
    from tests.simulation.world import World


class States:
    """All states that were ever taken over in a run.

    Args:
        world: Where their topics are.
        model: Told of what should not be.
    """

    def __init__(self, world: World, model: Model) -> None:
        self._world = world
        self._model = model
        self._led: list[tuple[Process | None, PulsarState]] = []

    def leads(self, state: PulsarState) -> None:
        """A node leads now: nobody else may, and it knows all that others stored."""
        here, now_s = PROCESS.get(), self._world.loop.time()
        for process, other in self._led:
            if other.topic != state.topic or process is None or not process.alive:
                continue
            left_s = other.held_until_s - now_s
            if other is not state and left_s > 0:
                self._model.wrong(
                    f"state: {here} leads, and {process} is sure to for {left_s:.3f} s"
                )
        self._led.append((here, state))
        self._knows_all(state)
        # What only the last leader knew is gone, as by a kill.
        self._model.killed()
        if self._model.clocks:
            self._model.set_boots.append(now_s)

    def takes(self, topic: str) -> None:
        """A node asks for a partition, to write to it: nobody leads after it."""
        here = PROCESS.get()
        own = {state.topic for process, state in self._led if process is here}
        led = [one for one in self._led if one[1].topic in own]
        if topic in own or not led:
            return
        process, state = led[-1]
        alive = process is not None and process.alive
        if process is not here and alive and state.leading:
            self._model.wrong(f"take: {here} takes {topic}, which {process} leads")

    def _knows_all(self, state: PulsarState) -> None:
        assert self._world.pulsar is not None
        stored, known = Facts(), state._replica.facts.values
        for one in self._world.pulsar.topics[state.topic]:
            stored.apply(decode(Entry(one.where, one.rest, 0)))
        wrong = [
            name
            for name in sorted(stored.values.keys() | known.keys())
            if stored.values.get(name) != known.get(name)
        ]
        for name in wrong[:3]:
            self._model.wrong(
                f"state: {PROCESS.get()} leads, and takes {name} for "
                f"{known.get(name)!r}, which is {stored.values.get(name)!r}"
            )
