"""Topics of gRPC clients that move to Ropeway and go back."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

from ropeway.client import Admin, admin_copies, admin_groups, admin_offsets
from ropeway.client.admin_copies import ORIGIN
from ropeway.client.admin_cut_over import CutOver
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import Rollback
from ropeway.gateway.wire import properties
from tests.ropeway.client.scenario import PATIENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.clients.harness import Event, Session
    from tests.clients.programs import Client

QUEUES, GROUPS = 2, 5
PAUSE_MS = 100
SOME = 30
"""So many messages more show that clients go on."""


class GrpcMoving:
    """A topic that moves and goes back, its producer, and a group that reads it.

    Args:
        client: Who sends and reads.
        ours: Its agent.
        topic: Its name.
        in_order: Whether messages are of message groups, and consumed in order.
    """

    def __init__(
        self, client: Client, ours: Session, topic: str, *, in_order: bool
    ) -> None:
        self.client = client
        self.topic = topic
        self.group = f"g-{topic}"
        self._ours = ours
        self._in_order = in_order

    async def begin(self, there: Admin, here: Admin) -> None:
        """Have it at both, send and read."""
        kind = "FIFO" if self._in_order else "NORMAL"
        await there.create_topic(self.topic, QUEUES, attributes={"message.type": kind})
        mirror = Mirror(there, here)
        pairs = await mirror.prepare(self.topic)
        for admin in (there, here):
            in_order = {"consume_message_orderly": self._in_order}
            await admin_groups.create(admin, self.group, in_order)
        begin = {pair.source: 0 for pair in pairs}
        await admin_offsets.place(there, self.group, begin)
        self.consumer = await asyncio.to_thread(
            self._ours.start, "consume", topic=self.topic, group=self.group
        )
        groups = {"groups": GROUPS} if self._in_order else {}
        self.producer = self._ours.call(
            "keep_sending", topic=self.topic, pause_ms=PAUSE_MS, **groups
        )

    async def goes_on(self) -> None:
        """Wait until some more were sent, and the last of them has come."""
        wanted = len(self.sent) + SOME
        found = await asyncio.to_thread(self.producer.wait_for, wanted, "sent")
        await asyncio.to_thread(self.consumer.wait_for_bodies, [found[-1]["body"]])

    @property
    def sent(self) -> list[Event]:
        """What was acknowledged by now."""
        return self.producer.events("sent")

    async def stored(self, admin: Admin) -> set[str]:
        """The bodies of what a cluster has of it, without copies from the other."""
        found = set()
        for queue in (await admin.route(self.topic)).read_queues:
            end = (await admin.span(queue)).end
            async for one in admin_copies.messages(admin, queue, 0, end):
                if ORIGIN not in properties.parse(one.properties):
                    found.add(one.body.decode())
        return found

    async def leaves(self, admin: Admin) -> None:
        """Wait until nothing more is stored by a cluster."""
        before = None
        while before != (found := len(await self.stored(admin))):
            before = found
            await self.goes_on()

    def check(self) -> None:
        """See that nothing was lost, and order held; print what clients noticed."""
        self.producer.stop()
        self.producer.finish()
        sent = [one["body"] for one in self.sent]
        received = self.consumer.wait_for_bodies(sent)
        self.consumer.stop()
        came = [*dict.fromkeys(one["body"] for one in received)]
        assert sorted(came, key=int) == sent
        if self._in_order:
            for group in range(GROUPS):
                of_group = [int(one) for one in came if int(one) % GROUPS == group]
                assert of_group == sorted(of_group)
        gaps_ms = [
            after["at_ms"] - before["at_ms"] for before, after in pairwise(received)
        ]
        print(
            f"{self.client.name}: {len(sent)} sent, "
            f"{len(self.producer.events('missed'))} refused, consumer gap "
            f"{max(gaps_ms) / 1000:.1f} s, {len(received) - len(came)} repeats"
        )


async def move_and_return(there: str, here: str, moving: Sequence[GrpcMoving]) -> None:
    """Move topics under their clients, and take them back.

    Args:
        there: The source's name servers.
        here: The target's.
        moving: The topics.
    """
    topics = [one.topic for one in moving]
    groups = [one.group for one in moving]
    async with (
        Admin(there, config=PATIENT) as source,
        Admin(here, config=PATIENT) as target,
    ):
        for one in moving:
            await one.begin(source, target)
        await asyncio.gather(*(one.goes_on() for one in moving))
        mirror = Mirror(source, target)
        moved = await CutOver(source, target, mirror).move(topics, groups, print)
        print(f"held {moved.paused_s * 1000:.0f} ms, {moved.left} late")
        await asyncio.gather(*(one.leaves(source) for one in moving))
        for one in moving:
            before, now = await one.stored(source), await one.stored(target)
            assert before
            assert before < now
        done = await Rollback(source, target, mirror).roll_back(topics, groups, print)
        print(f"held {done.paused_s * 1000:.0f} ms")
        await asyncio.gather(*(one.leaves(target) for one in moving))
        for one in moving:
            assert await one.stored(source) - await one.stored(target)
            await asyncio.to_thread(one.check)
