"""The load, the accounts of all partitions, and what is waited for after a fault."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.faults import kinds
from benchmarks.faults.calls import NotSentError, Router, ranks
from benchmarks.faults.kinds import ALL, FIRST, SECOND, TOPIC, Hit, Kind, Scene
from benchmarks.faults.ledger import PROBES, Ledger, Reader, Sender, longest
from benchmarks.faults.place import BROKERS, Place
from ropeway.client import (
    Admin,
    ConsumeFrom,
    ConsumerConfig,
    PullConsumer,
    admin_topics,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

PROBE = "probe"
SHARES = {SECOND: 2, FIRST: 4}
"""How many queues of the topic each broker has at first."""
SETTLE_S = 300.0
"""Longer than Pulsar takes to start on a loaded machine."""
LOOK_S = 0.1
CALM_S = 1.0
QUICK = ConsumerConfig(
    route_interval_s=1.0,
    rebalance_interval_s=1.0,
    retry_delay_s=0.2,
    request_timeout_s=3.0,
)


class Measured(NamedTuple):
    """A fault that is over."""

    kind: str
    broker_s: float
    queue_s: float
    settled_s: float
    load: float


class Soak:
    """The load, the accounts, and the faults."""

    def __init__(self, place: Place, seed: int, probes: int = PROBES) -> None:
        self.place = place
        self.probes = probes
        self.random = random.Random(seed)
        self.wrong: list[str] = []
        self.now = "start"
        self.stop_sends = asyncio.Event()
        self.stop = asyncio.Event()
        self.answered_s: dict[str, list[float]] = {FIRST: [], SECOND: []}
        self.ledgers: list[Ledger] = []
        self.got: dict[int, tuple[int, int]] = {}
        self.received: set[str] = set()
        self.again = 0
        self.router = Router([node.address for node in place.nodes], [TOPIC, PROBE])

    def report(self, what: str) -> None:
        self.wrong.append(f"{self.now}: {what}")
        print(f"WRONG {self.wrong[-1]}", flush=True)

    async def prepare(self) -> None:
        """Make the topics, and know where they are."""
        async with Admin(self.place.name_server, config=kinds.PATIENT) as admin:
            for broker, count in SHARES.items():
                await kinds.until_done(
                    lambda b=broker, c=count: admin_topics.create_on(admin, TOPIC, b, c)
                )
                await kinds.until_done(
                    lambda b=broker: admin_topics.create_on(admin, PROBE, b, 1)
                )
        wanted = sum(SHARES.values()) + len(SHARES)
        while len(self.router.places) < wanted:
            await self.router.refresh()
        for topic, partition in sorted(self.router.places):
            self.ledgers.append(Ledger(topic, partition, self.report))

    async def load(self) -> None:
        """Send and read until `stop`."""

        async def told(part: Coroutine[Any, Any, None]) -> None:
            try:
                await part
            except Exception:
                traceback.print_exc()
                raise

        async with asyncio.TaskGroup() as group:
            for ledger in self.ledgers:
                group.create_task(told(Reader(ledger, self.router).run(self.stop)))
                numbers = itertools.count()
                if ledger.topic == TOPIC:
                    any_node = bool(ledger.partition % 2)
                    sender = Sender(
                        ledger, self.router, any_node=any_node, noted=self._noted
                    )
                    group.create_task(told(sender.run(numbers, self.stop_sends)))
                    continue
                ledger.ordered = False
                for _ in range(self.probes):
                    probe = Sender(
                        ledger,
                        self.router,
                        seconds=1.0,
                        pause_s=0.5,
                        noted=self._noted,
                    )
                    group.create_task(told(probe.run(numbers, self.stop_sends)))
            group.create_task(told(self._look_on()))
            group.create_task(told(self._consume()))

    def _noted(self, broker: str) -> None:
        self.answered_s[broker].append(time.monotonic())

    async def _look_on(self) -> None:
        """Know of new places also where nobody was refused."""
        while not self.stop.is_set():
            await self.router.refresh()
            await asyncio.sleep(1.0)

    async def _consume(self) -> None:
        consumer = PullConsumer(
            self.place.name_server,
            "readers",
            consume_from=ConsumeFrom.FIRST_OFFSET,
            config=QUICK,
        )
        consumer.subscribe(TOPIC)
        async with consumer:
            while not self.stop.is_set():
                for one in await consumer.poll(1.0):
                    self._take(one.body.decode())

    def _take(self, body: str) -> None:
        if body in self.received:
            self.again += 1
            return
        self.received.add(body)
        partition, *place = map(int, body.split("."))
        number, attempt = place
        last = self.got.get(partition, (-1, -1))
        if (number, attempt) <= last:
            self.report(f"the group gets {body} behind {last}")
        self.got[partition] = number, attempt

    async def hit(self, kind: Kind) -> Measured:
        """Do it, wait until all is well, and check."""
        self.now = f"{time.strftime('%H:%M:%S')} {kind.name}"
        await asyncio.sleep(CALM_S)
        began_s = time.monotonic()
        scene = Scene(self.place, self.router, self.random, self.report)
        hit = await kind.act(scene)
        await self.settle(began_s)
        ended_s = time.monotonic()
        await self.catch_up()
        since_s = hit.since_s or began_s
        return Measured(
            kind.name,
            max(
                self._gap(self.answered_s[one], hit, since_s, ended_s)
                for one in self.answered_s
                if hit.broker in {ALL, one}
            ),
            max(
                self._gap(one.answered_s, hit, since_s, ended_s)
                for one in self.ledgers
                if one.topic == TOPIC
            ),
            ended_s - began_s,
            os.getloadavg()[0],
        )

    def _gap(
        self, answered_s: list[float], hit: Hit, since_s: float, until_s: float
    ) -> float:
        if hit.since_s is None:
            return longest(answered_s, since_s, until_s)
        # What is counted begins when a foreign server was ready.
        answered_s = [since_s, *(one for one in answered_s if one > since_s)]
        return longest(answered_s, since_s, until_s)

    async def settle(self, began_s: float) -> None:
        """Return when each queue serves, and each node is where it belongs."""
        from_s = time.monotonic()
        give_up_s = from_s + SETTLE_S
        told = False
        while not (
            await self._all_in_place()
            and all(
                one.answered_s and one.answered_s[-1] > from_s for one in self.ledgers
            )
        ):
            now_s = time.monotonic()
            if now_s > from_s + 60 and not told:
                told = True
                quiet = {
                    f"{one.topic}/{one.partition}": round(now_s - one.answered_s[-1], 1)
                    for one in self.ledgers
                }
                print(f"slow: {self.now} since {now_s - began_s:.0f} s: {quiet}")
            if now_s > give_up_s:
                self.report("not all serves again")
                return
            await asyncio.sleep(LOOK_S)

    async def _all_in_place(self) -> bool:
        wanted = {
            broker: sum(1 for one in BROKERS.values() if one == broker)
            for broker in (FIRST, SECOND)
        }
        try:
            found = [await ranks(node.address) for node in self.place.nodes]
        except (OSError, TimeoutError, LookupError, NotSentError):
            return False
        return all(
            one == found[0] and {b: len(n) for b, n in one.items()} == wanted
            for one in found
        )

    async def catch_up(self) -> None:
        """Return when all that was acknowledged until now was read, twice."""
        ends = [one.end for one in self.ledgers]
        wanted = {
            body
            for one in self.ledgers
            if one.topic == TOPIC
            for body in one.acknowledged() - self.received
        }
        give_up_s = time.monotonic() + SETTLE_S
        while True:
            behind = [
                f"{one.topic}/{one.partition} at {one.next} of {end}"
                for one, end in zip(self.ledgers, ends, strict=True)
                if one.next < end
            ]
            wanted -= self.received
            if not behind and not wanted:
                break
            if time.monotonic() > give_up_s:
                self.report(f"not read: {behind}; by the group: {sorted(wanted)[:20]}")
                break
            await asyncio.sleep(LOOK_S)
        for one in self.ledgers:
            one.check_missing()
