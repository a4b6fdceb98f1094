"""Topics that move to Ropeway and go back, with clients that send to them and read."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, starmap
from typing import TYPE_CHECKING

from ropeway.client import Admin, admin_cut_over, admin_groups, admin_topics
from ropeway.client.admin_cut_over import CutOver
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import Rollback
from tests.clients.harness import bodies
from tests.ropeway.client.scenario import PATIENT, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from tests.clients.harness import Call, Event, Session
    from tests.clients.programs import Client
    from tests.system.rocketmq import RocketMQ
    from tests.system.ropeway import Ropeway

SOURCE, OTHER = "source-0", "source-1"
TARGETS = {"broker-0", "broker-1"}
WIDE = 2
"""So many queues has a topic on each of two brokers of the source."""
APART_S = 1
"""Topics are begun so far apart: clients look at routes between."""
LOOK = {"poll_routes_ms": 3000}
"""Java's clients look at routes so often. The page's figures are of their own 30 s."""
MOST_REPEATS = 100
"""Go commits every 5 s, and ten are sent in a second."""
SETTLE_S = 10.0
"""For others, it is what commands have: they look every 30 s."""


async def mirrored(source: RocketMQ, target: Ropeway, topic: str) -> None:
    async with (
        Admin(source.name_server, config=PATIENT) as there,
        Admin(target.name_server, config=PATIENT) as here,
    ):
        mirror = Mirror(there, here)
        for pair in await mirror.prepare(topic):
            begin = await mirror.next_offset(pair)
            async for _ in mirror.copies(pair, begin):
                pass


class Moving:
    """A topic that moves and goes back, and a group of a client that reads it.

    Args:
        client: Who sends and reads.
        ours: Its agent.
        topic: Its name.
        wide: Whether both brokers of the source have it.
    """

    def __init__(
        self, client: Client, ours: Session, topic: str, *, wide: bool
    ) -> None:
        self.client = client
        self.wide = wide
        self.settle_s = SETTLE_S if "Java" in client.name else admin_cut_over.SETTLE_S
        self.ours = ours
        self.topic = topic
        self.group = f"g-{topic}"
        self.sent: list[Event] = []
        self.refused = 0
        self.held_s: list[float] = []
        self.consumer: Call | None = None

    def begin(self, source: RocketMQ, target: Ropeway) -> None:
        """Have it at both, and read."""
        if self.wide:
            asyncio.run(spread(source, self.topic))
        self.ours.introduce(self.topic, self.group)
        asyncio.run(mirrored(source, target, self.topic))
        asyncio.run(known(target, self.group))
        self.consumer = self.ours.start(
            "consume", topic=self.topic, group=self.group, orderly=True, **LOOK
        )

    def send(self) -> None:
        """Send a message, to the queues in turn."""
        shard = len(self.sent)
        call = self.ours.call(
            "produce",
            topic=self.topic,
            messages=[{"body": f"{shard}", "shard": shard}],
            mode="ordered",
            **LOOK,
        )
        found = call.finish().events("sent")
        self.refused += not found
        self.sent.extend({**one, "at_s": time.time()} for one in found)

    async def cut_over(self, there: Admin, here: Admin) -> None:
        """Move it."""
        job = CutOver(there, here, Mirror(there, here), self.settle_s)
        moved = await job.move([self.topic], [self.group], self.say)
        assert moved.left == 0
        self.held_s.append(moved.paused_s)

    async def roll_back(self, there: Admin, here: Admin) -> None:
        """Take it back."""
        job = Rollback(there, here, Mirror(there, here), self.settle_s)
        done = await job.roll_back([self.topic], [self.group], self.say)
        assert done.waiting == {self.topic: 0}
        self.held_s.append(done.paused_s)

    def say(self, step: str) -> None:
        """Print a step."""
        print(f"{time.time():.1f} {step}")

    def check(self, returns_at: int) -> None:
        """See that nothing was lost, and order held; print what clients noticed.

        Args:
            returns_at: How many were sent before it began to go back.
        """
        assert self.consumer is not None
        received = self.consumer.wait_for_bodies(bodies(self.sent))
        self.consumer.stop()
        came_over(self.sent[:returns_at], {SOURCE, OTHER}, TARGETS)
        came_over(self.sent[returns_at:], TARGETS, {SOURCE, OTHER})
        brokers = {one["broker"] for one in self.sent}
        assert (OTHER in brokers) == self.wide
        for queue in {queue_of(one) for one in self.sent}:
            sent = [one for one in self.sent if queue_of(one) == queue]
            came = [one["body"] for one in received if one["body"] in {*bodies(sent)}]
            assert [*dict.fromkeys(came)] == bodies(sent)
            # Offsets go on at both: nobody was late.
            offsets = [one["offset"] for one in sent]
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
        repeats = len(received) - len({one["body"] for one in received})
        # What was read between two commits, and not all since the cut-over.
        assert repeats < MOST_REPEATS
        held = ", ".join(f"{one * 1000:.0f}" for one in self.held_s)
        pause_s = _longest(one["at_s"] for one in self.sent)
        gap_s = _longest(one["at_ms"] / 1000 for one in received)
        print(
            f"{self.client.name}: {len(self.sent)} sent, {self.refused} refused; held "
            f"{held} ms, producer pause {pause_s:.2f} s, consumer gap {gap_s:.1f} s, "
            f"{repeats} repeats"
        )


def queue_of(sent: Event) -> int:
    """The queue that a message has at the target, wherever it is."""
    return int(sent["queue"]) + WIDE * (sent["broker"] == OTHER)


async def spread(source: RocketMQ, topic: str) -> None:
    """Make a topic on both brokers of the source."""
    async with Admin(source.name_server, config=PATIENT) as there:
        for broker in (SOURCE, OTHER):
            await admin_topics.create_on(there, topic, broker, WIDE)
        # Go's producer asks once.
        await eventually(
            lambda: there.route(topic), lambda route: len(route.write_queues) > WIDE
        )


async def known(target: Ropeway, group: str) -> None:
    """Have a group at the target, where its consumer may have made it."""
    async with Admin(target.name_server, config=PATIENT) as here:
        if await admin_groups.config(here, group) is None:
            await admin_groups.create(here, group, {})


def send(moving: Sequence[Moving], seconds: float) -> None:
    """Send to topics in turn for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for one in moving:
            one.send()
        time.sleep(0.1)


def send_during(
    source: RocketMQ,
    target: Ropeway,
    moving: Sequence[Moving],
    step: Callable[[Moving, Admin, Admin], Awaitable[None]],
) -> None:
    """Send until each topic has gone a step, one begun after the other."""

    async def work() -> None:
        async with (
            Admin(source.name_server, config=PATIENT) as there,
            Admin(target.name_server, config=PATIENT) as here,
        ):

            async def go(number: int, one: Moving) -> None:
                await asyncio.sleep(number * APART_S)
                await step(one, there, here)

            await asyncio.gather(*starmap(go, enumerate(moving)))

    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(asyncio.run, work())
        while not doing.done():
            send(moving, 0.5)
        doing.result()


def came_over(sent: list[Event], old: set[str], new: set[str]) -> None:
    """From one message to the next."""
    brokers = [one["broker"] for one in sent]
    first = next(number for number, one in enumerate(brokers) if one in new)
    assert first > 0
    assert set(brokers[:first]) <= old
    assert set(brokers[first:]) <= new


def _longest(times_s: Iterable[float]) -> float:
    return max(after - before for before, after in pairwise(sorted(times_s)))
