"""Pulsar's brokers: who serves which topic.

A broker is a process of its own in the simulated network. It dies, comes back, stands
still, is slow; its topics then go to another one, as they do when they are unloaded.
"""

from __future__ import annotations

import itertools
import math
import zlib
from typing import TYPE_CHECKING, Any

from tests.simulation import pulsar_rest
from tests.simulation.connections import Listening
from tests.simulation.loop import Process
from tests.simulation.pulsar_served import NOT_READY, Served
from tests.simulation.pulsar_sessions import NOT_FOUND, Session
from tests.simulation.pulsar_topics import Topic

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.simulation.connections import End
    from tests.simulation.network import Network
    from tests.simulation.pulsar_admin import Partitioned

PORT = 6650
BUNDLES = 4
"""Topics go from broker to broker in so many parts."""
EXPIRE_S = (0.5, 3.0)
"""How long a dead broker's topics are said to be there still."""
RETENTION_S = 4.5
"""How long ago what retention deletes was closed: longer than a node takes to note
where a partition ends. In earnest it is hours."""
DISK_S = (2e-4, 4e-3)
SLOW_DISK_S = (0.05, 0.5)
METADATA_S = (2e-4, 5e-3)


class Broker:
    """One broker, over all its processes."""

    def __init__(self, pulsar: Pulsar, number: int) -> None:
        self.pulsar = pulsar
        self.loop = pulsar.network.loop
        self.chance = pulsar.chance
        self.number = number
        self.host = f"10.0.5.{number + 1}"
        self.url = f"pulsar://{self.host}:{PORT}"
        self.is_slow = False
        self.served: dict[str, Served] = {}
        self.process: Process | None = None
        self._count = 0
        self.start()

    def start(self) -> None:
        """Begin a process, unless one runs."""
        if self.process is not None:
            return
        self._count += 1
        process = self.process = Process(
            f"pulsar{self.number}.{self._count}", self.host
        )
        listening = Listening(self.pulsar.network, process, PORT)
        listening.is_tapped = False

        def accept() -> None:
            while listening.arriving:
                end: End = listening.arriving.popleft()
                if end.lost:
                    continue
                end.protocol = Session(self)
                end.protocol.connection_made(end)
                end._call(end._take)

        listening.watch(accept)
        pulsar_rest.listen(self)

    def kill(self) -> Process | None:
        """Die; the topics are somebody else's after a while."""
        process, self.process = self.process, None
        served, self.served = self.served, {}
        for one in served.values():
            one.end()
        return process

    def serve(self, name: str) -> Served | tuple[int, str]:
        """A topic, where this broker is to serve it; else why not."""
        if self.pulsar.owner(name) is not self:
            return NOT_READY, f"{name} is not served by this instance"
        topic = self.pulsar.topics.get(name)
        if topic is None:
            return NOT_FOUND, f"Topic {name} not found"
        found = self.served.get(name)
        if found is None or found.topic is not topic:
            found = self.served[name] = Served(self, topic)
        return found

    def later(self, call: Callable[..., None], *arguments: Any) -> None:
        """Do something when metadata have been asked."""
        self.after(self.chance.uniform(*METADATA_S), call, *arguments)

    def after(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Do something as this process after a time."""
        if self.process is not None:
            context = self.process.context.copy()
            self.loop.call_later(delay_s, call, *args, context=context)

    def disk_s(self) -> float:
        """How long bookies take for an entry."""
        return self.chance.uniform(*(SLOW_DISK_S if self.is_slow else DISK_S))

    def now_s(self) -> float:
        """The time by which ledgers are closed."""
        return self.loop.time()


class Pulsar:
    """A cluster: what is stored, and its brokers.

    Args:
        network: Where they are.
        chance: What takes how long, and who serves what.
        brokers: How many.
        counts: Whether they tell indexes (PIP-70).
    """

    def __init__(
        self,
        network: Network,
        chance: random.Random,
        brokers: int = 2,
        *,
        counts: bool = True,
    ) -> None:
        self.network = network
        self.chance = chance
        self._counts = counts
        self._ledgers = itertools.count(1)
        self.topics: dict[str, Topic] = {}
        self.schemas: dict[str, list[bytes]] = {}
        """All that each topic ever had, the newest last."""
        self.tenants = {"public"}
        self.spaces: dict[str, dict[str, Any]] = {"public/default": {"properties": {}}}
        """By `tenant/namespace`, the policies."""
        self.partitioned: dict[str, Partitioned] = {}
        self.brokers = [Broker(self, number) for number in range(brokers)]
        self._owners: dict[int, Broker | None] = {}
        self.trimmed_s = -math.inf
        """All that retention has deleted was stored before."""

    @property
    def service_url(self) -> str:
        """Where clients ask."""
        return "pulsar://" + ",".join(f"{one.host}:{PORT}" for one in self.brokers)

    @property
    def admin_url(self) -> str:
        """Where the admin REST is."""
        port = pulsar_rest.PORT
        return "http://" + ",".join(f"{one.host}:{port}" for one in self.brokers)

    def make(self, name: str) -> bool:
        """Make a topic; False where there is one."""
        if name in self.topics:
            return False
        self.topics[name] = Topic(name, self._ledgers, self._counts)
        return True

    def delete(self, name: str) -> bool:
        """Delete a topic with whoever is connected to it; False where there is none."""
        if self.topics.pop(name, None) is None:
            return False
        for broker in self.brokers:
            served = broker.served.pop(name, None)
            if served is not None:
                served.unload()
        return True

    def trim(self, part: str, age_s: float = RETENTION_S) -> bool:
        """Delete what was closed long enough ago; False where there is nothing.

        Args:
            part: Of the names of the topics.
            age_s: How long ago.
        """
        before_s = self.network.loop.time() - age_s
        found = [one for name, one in self.topics.items() if part in name]
        trimmed = sum(one.trim(before_s) for one in found) > 0
        if trimmed:
            self.trimmed_s = before_s
        return trimmed

    def owner(self, name: str) -> Broker | None:
        """Who is said to serve a topic; None: nobody at the moment."""
        bundle = zlib.crc32(name.encode()) % BUNDLES
        found = self._owners.get(bundle)
        if found is None and bundle not in self._owners:
            running = [one for one in self.brokers if one.process is not None]
            if running:
                found = self._owners[bundle] = self.chance.choice(running)
        return found

    def unload(self, bundle: int, to: Broker | None = None) -> bool:
        """Have a part of the topics served anew; False where nobody serves it."""
        owner = self._owners.pop(bundle, None)
        if owner is None:
            return False
        for name in [*owner.served]:
            if zlib.crc32(name.encode()) % BUNDLES == bundle:
                owner.served.pop(name).unload()
        if to is not None:
            self._owners[bundle] = to
        return True

    def kill(self, broker: Broker) -> Process | None:
        """End a broker; what it served is another's when its session is over."""
        process = broker.kill()
        if process is not None:
            expire_s = self.chance.uniform(*EXPIRE_S)
            self.network.loop.call_later(expire_s, self._expire, broker, process)
        return process

    def heal(self) -> None:
        """End all that lasts."""
        for broker in self.brokers:
            broker.is_slow = False
            broker.start()

    def _expire(self, broker: Broker, _process: Process) -> None:
        for bundle, owner in [*self._owners.items()]:
            if owner is broker:
                self.unload(bundle)
