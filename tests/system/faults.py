"""Producers, consumers and a probe that run while something fails, and what is checked.

What must hold after any fault: each acknowledged send is stored, at the offset that was
acknowledged and at no other; queues have no gap; consumers get all of it, in the order
of each queue; nothing is stored twice that was not sent twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from tests.clients.harness import WAIT_SECONDS
from tests.remoting import Frame, Remoting, connect
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.wire.header import Header
    from tests.clients.harness import Call, Event, Session
    from tests.system.cluster import Cluster

QUEUES = 4
PAUSE_MS = 20
RECOVERY_S = 300
"""Longer than it takes to start Pulsar again on a loaded machine."""
ROUTES_MS = 1000
"""How often the clients ask for routes: by default half a minute, which would be all
that is measured."""
PROBE_S = 0.1
"""How exactly the time without service is told: each probe costs three connections."""
TRY_S = 1.0
PULLED = {
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
}
"""Answers of who has looked."""
TEMPLATE = "TBW102"
"""The topic of which there is always a route, to each master."""


class Load:
    """A producer and two consumers of the Java client."""

    def __init__(self, session: Session, topic: str, count: int) -> None:
        self._topic = topic
        session.call("create_topic", topic=topic, queues=QUEUES).finish()
        self.consumers: dict[str, Call] = {
            way: session.start(
                "consume",
                topic=topic,
                group=f"{topic}-{way}",
                orderly=way == "orderly",
                poll_routes_ms=ROUTES_MS,
            )
            for way in ("concurrently", "orderly")
        }
        self._producer = produce(session, topic, range(count))
        self._count = count

    def flows(self, after: int = 0) -> int:
        """Return when some sends after so many are acknowledged, and some consumed.

        Or all, where there are no more: a busy machine may have taken its time.
        """
        for consumer in self.consumers.values():
            consumer.wait_for(1, seconds=RECOVERY_S)
        wanted = min(after + self._count // 10, self._count)
        return len(self._producer.wait_for(wanted, "sent", seconds=RECOVERY_S))

    def acknowledged(self) -> list[Event]:
        """Every send that was acknowledged, once all were."""
        self._producer.wait_for(1, "done", seconds=RECOVERY_S)
        sent = self._producer.events("sent")
        assert sorted(int(one["body"]) for one in sent) == list(range(self._count))
        return sent

    def check(self, cluster: Cluster) -> list[Event]:
        """See that nothing is lost, out of order or not consumed, nor stored too often.

        A message is stored once more for each send whose answer was lost, as the
        client sends it again; whatever else stands twice in the log is a fault.

        Returns:
            What the consumers received that had come before: they may receive again
            what they had not committed.
        """
        sent = self.acknowledged()
        stored = asyncio.run(read_all(cluster, self._topic))
        for one in sent:
            assert stored[one["queue"]][one["offset"]] == one["body"]
        for queue in stored:
            # A send whose answer was lost was sent again, and may be there twice; the
            # first of each must be in the order of the sends.
            first = list(dict.fromkeys(map(int, queue)))
            assert first == sorted(first)
        places = {(one["queue"], one["offset"]) for one in sent}
        assert len(places) == len(sent)
        again = []
        everything = [body for queue in stored for body in queue]
        tries = Counter(one["body"] for one in self._producer.events("retried"))
        too_often = Counter(everything) - tries - Counter(set(everything))
        assert not too_often, f"stored though nobody sent them again: {too_often}"
        for way, consumer in self.consumers.items():
            consumer.wait_for_bodies(everything, seconds=RECOVERY_S)
            received = consumer.stop()
            again += _repeats(received)
            if way == "orderly":
                _check_order(received)
        return again


def produce(session: Session, topic: str, numbers: range) -> Call:
    """Send numbers in their order, a queue's each after the other, again and again."""
    return session.call(
        "produce",
        topic=topic,
        messages=[
            {"body": f"{number}", "shard": number % QUEUES} for number in numbers
        ],
        mode="ordered",
        pause_ms=PAUSE_MS,
        retry_for_ms=RECOVERY_S * 1000,
        timeout_ms=3000,
        poll_routes_ms=ROUTES_MS,
        producer_group=f"{topic}-producers",
    )


def _repeats(received: Sequence[Event]) -> list[Event]:
    seen: set[tuple[int, int]] = set()
    again = []
    for one in received:
        place = (one["queue"], one["offset"])
        if place in seen:
            again.append(one)
        seen.add(place)
    return again


def _check_order(received: Sequence[Event]) -> None:
    """The first arrivals of each queue are in its order."""
    for queue in range(QUEUES):
        offsets = [one["offset"] for one in received if one["queue"] == queue]
        first = list(dict.fromkeys(offsets))
        assert first == sorted(first)


async def read_all(cluster: Cluster, topic: str) -> list[list[str]]:
    """The bodies of each queue; every node that runs answers for the broker."""
    port = next(node.broker_port for node in cluster.nodes if node.runs)
    place = SimpleNamespace(host="127.0.0.1", port=port)
    async with connect(place) as client:
        return [await _read_queue(client, topic, number) for number in range(QUEUES)]


async def _read_queue(client: Remoting, topic: str, queue_id: int) -> list[str]:
    found: list[str] = []
    give_up = time.monotonic() + RECOVERY_S
    while True:
        answer = await client.ask(
            pulling(topic, len(found), queue_id=queue_id, max_msg_nums=1000, bulk=True)
        )
        if answer.code not in PULLED and time.monotonic() < give_up:
            # Nobody leads yet, or the log cannot be read for a moment.
            await asyncio.sleep(PROBE_S)
            continue
        messages = answer.messages() if answer.code == 0 else []
        if not messages:
            assert answer.read_end() == len(found), answer.remark
            return found
        for one in messages:
            assert one.queue_offset == len(found), "no gap and no repeat"
            found.append(one.body.decode())


class Probe:
    """Sends to whoever is the master, and measures how long nobody answers.

    It asks for the route before each try, so what it sees is the cluster's doing, and
    not how seldom a client asks.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._addresses = [node.name_server for node in cluster.nodes]
        self._topic = topic
        self._began = threading.Event()
        self._ended = threading.Event()
        self._gaps = [0.0]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        # Its topic is made by its first message, which is no part of the service.
        assert self._began.wait(WAIT_SECONDS)

    def stop(self) -> float:
        """The longest time without service, in seconds."""
        self._ended.set()
        self._thread.join()
        return max(self._gaps)

    async def _run(self) -> None:
        answered_s = time.monotonic()
        while not self._ended.is_set():
            try:
                async with asyncio.timeout(TRY_S):
                    await self._send()
            except (OSError, TimeoutError, LookupError, RuntimeError):
                await asyncio.sleep(PROBE_S)
                continue
            now_s = time.monotonic()
            if self._began.is_set():
                self._gaps.append(now_s - answered_s)
            self._began.set()
            answered_s = now_s
            await asyncio.sleep(PROBE_S)

    async def _send(self) -> None:
        answer = await self._ask_for_a_route()
        route = msgspec.json.decode(answer.body, type=bodies.TopicRoute)
        master = route.broker_datas[0].broker_addrs["0"]
        async with _reach(master) as client:
            sent = await client.ask(sending(self._topic), b"probe")
            if sent.code:
                raise LookupError(sent.remark)

    async def _ask_for_a_route(self) -> Frame:
        """The route that whoever answers first gives: a frozen node is no news."""
        asking = [
            asyncio.create_task(_ask(address, GetRouteInfo(topic=TEMPLATE)))
            for address in self._addresses
        ]
        try:
            for first in asyncio.as_completed(asking):
                with contextlib.suppress(OSError, LookupError):
                    return await first
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        raise LookupError("no node answers")


async def _ask(address: str, header: Header) -> Frame:
    async with _reach(address) as client:
        answer = await client.ask(header)
        if answer.code:
            raise LookupError(answer.remark)
        return answer


def _reach(address: str) -> Remoting:
    host, port = address.split(":")
    return connect(SimpleNamespace(host=host, port=int(port)))
