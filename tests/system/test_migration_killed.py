"""A migration whose node, source and commands are killed, there and back again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    RemotingError,
    admin_copies,
)
from ropeway.client.admin_cut_over import CutOver
from ropeway.client.admin_finish import Finish
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import RETURNED, Rollback
from ropeway.testing import running_gateway
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario, until
from tests.ropeway.client.test_admin_cut_over import KilledError, led_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.testing import Gateway

pytestmark = pytest.mark.slow

TOPICS = 12
"""Each is moved by a command that meets a kill, and taken back by another one."""
MOVING, TAKING_BACK = 80, 190
"""About so many requests have a cut-over and a rollback."""


class Killer:
    """Has a command meet a kill at one of its requests."""

    def __init__(self) -> None:
        self._left = 0
        self._victim: Gateway | None = None
        self.kills = 0

    def aim(self, victim: Gateway | None, request: int) -> None:
        """Kill at that request, from 1: a server, or the command itself."""
        self._victim, self._left = victim, request

    async def count(self) -> None:
        """A request begins."""
        self._left -= 1
        if self._left:
            return
        self.kills += 1
        if self._victim is None:
            raise KilledError
        self._victim.kill()
        await asyncio.to_thread(self._victim.start)

    def count_those_of(self, admin: Admin) -> None:
        """Have all requests of a client counted."""
        connections = admin._instance.connections
        request = connections.request

        async def counted(*words: Any, **more: Any) -> Any:
            await self.count()
            return await request(*words, **more)

        connections.request = counted


@scenario
async def test_nothing_acknowledged_is_lost_whatever_is_killed():
    with running_gateway() as there, led_to(there.name_server) as here:
        topics = [f"orders-{number}" for number in range(TOPICS)]
        sender, killer, victims = Sender(topics), Killer(), (here, there, None)
        async with (
            Admin(there.name_server, config=PATIENT) as source,
            Admin(here.name_server, config=PATIENT) as ours,
            Producer(here.name_server, "p", config=PRODUCER) as producer,
        ):
            for topic in topics:
                await source.create_topic(topic, 1)
                await Mirror(source, ours).prepare(topic)
            for admin in (source, ours):
                killer.count_those_of(admin)
            sending = asyncio.create_task(sender.send(producer))
            mirror = Mirror(source, ours)

            async def move(topic: str) -> None:
                job = CutOver(source, ours, mirror, 0)
                if await job.not_moved([topic]):
                    await job.move([topic], [], lambda _: None)
                # Nobody waited for producers to look at routes: some came late.
                await Finish(source, ours).bring(topic)

            async def take_back(topic: str) -> None:
                job = Rollback(source, ours, mirror, 0)
                await job.roll_back([topic], [], lambda _: None)
                assert await job.stage(topic) == RETURNED

            for command, requests, stored in (
                (move, MOVING, ours),
                (take_back, TAKING_BACK, source),
            ):
                for number, topic in enumerate(topics):
                    victim = victims[number % len(victims)]
                    killer.aim(victim, 1 + requests * number // TOPICS)
                    await until_done(command, topic)
                await sender.sends_more()
                for topic in topics:
                    await holds(stored, topic, sender.acknowledged[topic])
            sender.is_enough = True
            await sending
    assert killer.kills >= TOPICS


class Sender:
    """Sends to topics in turn, and notes what was acknowledged."""

    def __init__(self, topics: list[str]) -> None:
        self.acknowledged: dict[str, list[bytes]] = {topic: [] for topic in topics}
        self.is_enough = False

    async def send(self, producer: Producer) -> None:
        for number in count():
            for topic, of_topic in self.acknowledged.items():
                body = b"%d" % number
                # What is not acknowledged may be stored, or not.
                with suppress(RemotingError):
                    await producer.send(Message(topic, body))
                    of_topic.append(body)
                await asyncio.sleep(0.001)
            if self.is_enough:
                return

    async def sends_more(self) -> None:
        """Wait until a message of each topic was acknowledged."""
        before = {topic: len(of) for topic, of in self.acknowledged.items()}
        await until(
            lambda: all(
                len(of_topic) > before[topic]
                for topic, of_topic in self.acknowledged.items()
            )
        )


async def until_done(command: Callable[[str], Awaitable[None]], topic: str) -> None:
    """Run the same command until it ends by itself."""
    while True:
        with suppress(RemotingError, KilledError):
            return await command(topic)
        await asyncio.sleep(0.05)


async def holds(admin: Admin, topic: str, acknowledged: list[bytes]) -> None:
    """See that all is there that was acknowledged."""
    sent = set(acknowledged)
    (queue,) = (await admin.route(topic)).read_queues
    end = (await admin.span(queue)).end
    found = {one.body async for one in admin_copies.messages(admin, queue, 0, end)}
    assert sent - found == set()
