"""A migration whose nodes, source and commands are killed, there and back again."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    RemotingError,
    admin_copies,
    admin_groups,
    admin_offsets,
    admin_topics,
)
from ropeway.client.admin_cut_over import CutOver
from ropeway.client.admin_finish import Finish
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import RETURNED, Rollback
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.testing import running_gateway
from tests.ropeway.client.scenario import (
    PATIENT,
    PRODUCER,
    eventually,
    scenario,
    until,
)
from tests.ropeway.client.test_admin_cut_over import KilledError, led_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from ropeway.client.message import MessageQueue
    from ropeway.gateway.wire.message import Message as StoredMessage
    from ropeway.testing import Gateway
    from tests.system.rocketmq import RocketMQ

    Victim = Callable[[str], None]
    Wanted = Callable[[object], bool]

pytestmark = pytest.mark.slow

TOPICS = 12
"""Each is moved by a command that meets a kill, and taken back by another one."""
_LOOKS = 60
SENT = 300
MOVING, TAKING_BACK = 80, 190
"""About so many requests have a cut-over and a rollback."""


class Aim(NamedTuple):
    """Whom a command's kill meets, and before which of its requests."""

    victim: Victim | None
    """Kills a server and starts it again, given whom the request is for; None: the
    command itself ends."""
    wanted: Wanted


def nth(number: int) -> Wanted:
    """The request of that number, from 1."""
    numbers = count(1)
    return lambda _: next(numbers) == number


def step(writes: str) -> Wanted:
    """The request that has messages be stored elsewhere: while they are held."""
    return lambda request: isinstance(request, CreateTopic) and request.writes == writes


def of_kind(*kinds: type) -> Wanted:
    """The first request of these kinds."""
    return lambda request: isinstance(request, kinds)


def again(server: Gateway | RocketMQ) -> Victim:
    """That server."""

    def kill(_: str) -> None:
        server.kill()
        server.start()

    return kill


class Killer:
    """Has commands meet a kill at one of their requests."""

    def __init__(self) -> None:
        self._aim: Aim | None = None
        self.kills = 0

    def aim(self, aim: Aim) -> None:
        """Kill so the next time."""
        self._aim = aim

    async def comes(self, address: str, request: object) -> None:
        """A request begins."""
        if self._aim is None or not self._aim.wanted(request):
            return
        victim, self._aim = self._aim.victim, None
        self.kills += 1
        if victim is None:
            raise KilledError
        await asyncio.to_thread(victim, address)

    def watch(self, admin: Admin) -> None:
        """Have all requests of a client come by."""
        connections = admin._instance.connections
        request = connections.request

        async def watched(address: str, header: Any, *words: Any, **more: Any) -> Any:
            await self.comes(address, header)
            return await request(address, header, *words, **more)

        connections.request = watched


@scenario
async def test_nothing_acknowledged_is_lost_whatever_is_killed():
    with running_gateway() as there, led_to(there.name_server) as here:
        victims = (again(here), again(there), None)
        aims = [
            [
                Aim(victims[number % 3], nth(1 + requests * number // TOPICS))
                for number in range(TOPICS)
            ]
            for requests in (MOVING, TAKING_BACK)
        ]
        topics = [f"orders-{number}" for number in range(TOPICS)]
        async with Admin(there.name_server, config=PATIENT) as source:
            for topic in topics:
                await source.create_topic(topic, 1)
        kills = await there_and_back(there.name_server, here.name_server, topics, aims)
    assert kills >= TOPICS


@scenario
async def test_a_mirror_goes_on_where_its_source_is_lost_and_hands_back():
    topic, group = "orders", "kitchen"
    with (
        running_gateway(options=("--broker", "west-0")) as west,
        led_to(west.name_server) as east,
    ):
        acknowledged: list[tuple[int, bytes, float]] = []
        async with (
            Admin(east.name_server, config=PATIENT) as there,
            Admin(west.name_server, config=PATIENT) as here,
            Producer(east.name_server, "p", config=PRODUCER) as producer,
        ):
            await there.create_topic(topic, 1)
            for admin in (there, here):
                await admin_groups.create(admin, group, {})
            mirror = Mirror(there, here)
            (pair,) = await mirror.prepare(topic)

            async def send() -> None:
                for number in count():
                    body = b"%d" % number
                    sent = await producer.send(Message(topic, body))
                    acknowledged.append((sent.queue_offset, body, time.monotonic()))
                    await asyncio.sleep(0.001)

            async def copy() -> None:
                """As the command does, and so is what follows."""
                while True:
                    at = await mirror.next_offset(pair)
                    async with aclosing(mirror.copies(pair, at)) as copies:
                        async for _ in copies:
                            pass
                    await asyncio.sleep(0.2)

            async def follow() -> None:
                while True:
                    await mirror.follow(group, [pair])
                    await asyncio.sleep(0.2)

            doing = [asyncio.create_task(one()) for one in (send, copy, follow)]
            await until(lambda: len(acknowledged) >= SENT)
            await admin_offsets.place(there, group, {pair.source: 7})

            async def followed() -> int | None:
                return await admin_offsets.committed(here, group, pair.target)

            await eventually(followed, lambda at: at == 7)
            # The whole cluster is gone, with what is under way.
            east.kill()
            lost_s = time.monotonic()
            for one in doing:
                one.cancel()
            await asyncio.gather(*doing, return_exceptions=True)
            await admin_topics.update(here, topic, perm=6)
            async with Producer(west.name_server, "p", config=PRODUCER) as other:
                sent = await other.send(Message(topic, b"after"))
            took_s = time.monotonic() - lost_s
            end = sent.queue_offset
            missing = [at_s for at, _, at_s in acknowledged if at >= end]
            behind_s = lost_s - min(missing, default=lost_s)
            print(
                f"of {len(acknowledged)} acknowledged {len(missing)} are not here, of "
                f"the last {behind_s:.3f} s; open again after {took_s:.3f} s"
            )
            kept = [one.body async for one in messages(here, pair.target)]
            assert kept == [body for _, body, _ in acknowledged[:end]] + [b"after"]
            assert await followed() == 7
        # Back again, as a migration, with what was stored meanwhile.
        await asyncio.to_thread(east.start)
        async with (
            Admin(west.name_server, config=PATIENT) as source,
            Admin(east.name_server, config=PATIENT) as ours,
        ):
            await ours.delete_topic(topic)
            mirror = Mirror(source, ours)
            (pair,) = await mirror.prepare(topic)
            await CutOver(source, ours, mirror, 0).move([topic], [group], print)
            assert [one.body async for one in messages(ours, pair.target)] == kept
            assert await admin_offsets.committed(ours, group, pair.target) == 7
            async with Producer(east.name_server, "q", config=PRODUCER) as other:
                sent = await other.send(Message(topic, b"home"))
            assert sent.queue_offset == len(kept)


def messages(admin: Admin, queue: MessageQueue) -> AsyncIterator[StoredMessage]:
    """All of a queue."""
    return admin_copies.messages(admin, queue, 0, 1 << 60)


async def there_and_back(
    there: str, here: str, topics: Sequence[str], aims: Sequence[Sequence[Aim]]
) -> int:
    """Move topics of the source and take them back, under sends; how many kills.

    Args:
        there: The source's name servers.
        here: The target's.
        topics: Exist at the source.
        aims: Of each way, one for each topic.
    """
    sender, killer = Sender(topics), Killer()
    async with (
        Admin(there, config=PATIENT) as source,
        Admin(here, config=PATIENT) as ours,
        Producer(here, "p", config=PRODUCER) as producer,
    ):
        mirror = Mirror(source, ours)
        for topic in topics:
            await mirror.prepare(topic)
        for admin in (source, ours):
            killer.watch(admin)
        sending = asyncio.create_task(sender.send(producer))

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

        for command, of_way, stored in zip(
            (move, take_back), aims, (ours, source), strict=True
        ):
            for topic, aim in zip(topics, of_way, strict=True):
                killer.aim(aim)
                await until_done(command, topic)
            await sender.sends_more()
            for topic in topics:
                await holds(stored, topic, [*sender.acknowledged[topic]])
        sender.is_enough = True
        await sending
    return killer.kills


class Sender:
    """Sends to topics in turn, and notes what was acknowledged."""

    def __init__(self, topics: Sequence[str]) -> None:
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
    """See that all is there that was acknowledged.

    A node that has just stopped leading, or not yet begun, is a little behind.
    """

    async def missing() -> set[bytes]:
        found: set[bytes] = set()
        for queue in (await admin.route(topic)).read_queues:
            end = (await admin.span(queue)).end
            messages = admin_copies.messages(admin, queue, 0, end)
            found |= {one.body async for one in messages}
        return set(acknowledged) - found

    for _ in range(_LOOKS):
        if not await missing():
            return
        await asyncio.sleep(0.5)
    assert await missing() == set()
