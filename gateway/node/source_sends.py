"""Sending on to a migration's source, while producers are led here already.

The source stores what is sent and answers with its offsets, so nothing changes but the
way: when all producers come by it, messages can be stored here from one to the next.
For that they are held for a moment, in which the mirror gets the last one.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from ropeway.client.diagnosis import refusal
from ropeway.client.errors import (
    ConnectionFailedError,
    RequestTimeoutError,
    ResponseError,
)
from ropeway.client.routes import DEFAULT_TOPIC, MASTER_ID
from ropeway.client.send_request import MIGRATION_GROUP, STATUS_OF_CODE
from ropeway.client.spread_queues import in_order
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.commands.send import SendMessageV2, SendReply

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.client.connection import Response
    from ropeway.client.connections import Connections
    from ropeway.client.message import MessageQueue
    from ropeway.gateway.wire import bodies
    from ropeway.gateway.wire.commands.send import SendMessage

HOLD_S = 2.0
"""How long senders wait at most; then messages go to the source as before."""
SEND_S = 3.0
"""How long the source has for an answer: as long as clients wait."""
_LOOK_S = 0.005
_SOURCE = "the migration's source"
_NO_QUEUE = 1 << 30
"""No topic has so many queues."""
ANY_CODE = range(-(1 << 31), 1 << 31)
"""Whoever asked is told what the source says."""
_DELAYS = (
    properties.DELAY,
    properties.TIMER_DELAY_MS,
    properties.TIMER_DELAY_SEC,
    properties.TIMER_DELIVER_MS,
)


class SourceRoute(NamedTuple):
    """Where the source has a topic."""

    body: bytes
    """As it came."""
    route: bodies.TopicRoute


class _Finds(Protocol):
    async def find(self, topic: str, ours: Collection[str]) -> SourceRoute | None: ...


class Sent(NamedTuple):
    """What the source answered, and to which queue of the mirror it belongs."""

    answer: Response
    queue_id: int | None
    """None where nothing is stored."""


class _Place(NamedTuple):
    """A queue of the source."""

    address: str
    queue_id: int
    before: int
    """How many queues of the mirror are before those of the same broker."""


class _Hold(NamedTuple):
    name: str
    until_s: float


class SourceSends:
    """What is sent on.

    Args:
        routes: Know where the source has topics.
        connections: To send through.
    """

    def __init__(self, routes: _Finds, connections: Connections) -> None:
        self._routes = routes
        self._connections = connections
        self._under_way: Counter[str] = Counter()
        self._holds: dict[str, _Hold] = {}
        self._ends: dict[str, dict[int, int]] = {}

    async def send(
        self,
        request: SendMessage,
        body: bytes,
        queues: int | None,
        ours: Collection[str],
    ) -> Sent:
        """Have the source store a message or a batch; its answer, whatever that says.

        Args:
            request: For a queue of the mirror.
            body: Of the message, or the batch.
            queues: How many the mirror has; None where there is none.
            ours: The names of this cluster's brokers.

        Raises:
            RemotingError: It did not answer, or has no broker for it.
            SourceError: Nobody says where it has the topic.
        """
        topic = request.topic
        self._under_way[topic] += 1
        try:
            place = await self._place(topic, request.queue_id, queues, ours)
            answer = await self._connections.request(
                place.address,
                msgspec.structs.replace(request, queue_id=place.queue_id),
                body,
                timeout_s=SEND_S,
                expect=ANY_CODE,
            )
            if answer.code not in STATUS_OF_CODE:
                return Sent(answer, None)
            reply = answer.header(SendReply)
            queue_id = place.before + reply.queue_id
            if not is_delayed(request):
                self._acknowledged(topic, queue_id, reply)
            return Sent(answer, queue_id)
        finally:
            self._under_way[topic] -= 1

    async def _place(
        self, topic: str, queue_id: int, queues: int | None, ours: Collection[str]
    ) -> _Place:
        """Where the source has what is a queue of the mirror here."""
        route = await self._route(topic, ours)
        theirs = queues_of(topic, route)
        queues = len(theirs) if queues is None else queues
        brokers = {one.broker_name for one in theirs}
        if len(theirs) < queues or (len(brokers) > 1 and len(theirs) > queues):
            # Which queue is which can be told when all are there.
            raise ConnectionFailedError(
                _SOURCE,
                f"has {len(theirs)} queues of topic {topic:.200} now, and {queues} "
                "are mirrored; is a broker away?",
            )
        if len(brokers) > 1 and not 0 <= queue_id < len(theirs):
            queue_id = random.randrange(len(theirs))  # noqa: S311 - a spread
        name = theirs[queue_id if len(brokers) > 1 else 0].broker_name
        address = masters(route).get(name)
        if address is None:
            raise ConnectionFailedError(_SOURCE, f"has no master of broker {name}")
        before = [one.broker_name for one in theirs].index(name)
        return _Place(address, queue_id - before, before)

    async def _route(self, topic: str, ours: Collection[str]) -> bodies.TopicRoute:
        """Where the source has a topic: one master at least."""
        found = await self._routes.find(topic, ours)
        if found is None or not masters(found.route):
            raise ConnectionFailedError(
                _SOURCE, f"has no broker for topic {topic:.200}"
            )
        return found.route

    async def refusal(self, topic: str, ours: Collection[str]) -> str | None:
        """Ask why the source lets this node send nothing to a topic; None if it does.

        Brokers look at who asks before they see that there is no such queue, so
        nothing is stored.

        Raises:
            RemotingError: It did not answer, or has no broker for it.
            SourceError: Nobody says where it has the topic.
        """
        route = await self._route(topic, ours)
        request = SendMessageV2(
            producer_group=MIGRATION_GROUP,
            topic=topic,
            default_topic=DEFAULT_TOPIC,
            default_topic_queue_nums=1,
            queue_id=_NO_QUEUE,
            sys_flag=0,
            born_timestamp=0,
            flag=0,
        )
        for address in masters(route).values():
            answer = await self._connections.request(
                address, request, b"?", timeout_s=SEND_S, expect=ANY_CODE
            )
            said = refusal(ResponseError(answer.code, answer.remark, address))
            if said is not None:
                return said
        return None

    def _acknowledged(self, topic: str, queue_id: int, reply: SendReply) -> None:
        ends = self._ends.setdefault(topic, {})
        end = reply.queue_offset + reply.msg_id.count(",") + 1
        ends[queue_id] = max(end, ends.get(queue_id, 0))

    def ends(self, topic: str) -> dict[int, int]:
        """Behind the last message that was acknowledged, by the mirror's queue.

        RocketMQ acknowledges what its queues show a moment later.
        """
        return self._ends.get(topic, {})

    async def hold(self, topic: str, name: str) -> None:
        """Let nothing of a topic be sent on for a moment; returns when nothing is.

        Raises:
            RequestTimeoutError: The source has not answered what was sent before.
        """
        clock = asyncio.get_running_loop().time
        hold = self._holds[topic] = _Hold(name, clock() + HOLD_S)
        while self._under_way[topic]:
            if clock() >= hold.until_s:
                raise RequestTimeoutError(_SOURCE, f"no answers within {HOLD_S:g} s")
            await asyncio.sleep(_LOOK_S)

    def is_held(self, topic: str, name: str | None = None) -> bool:
        """Whether nothing of a topic is sent on; and since a hold of that name."""
        hold = self._holds.get(topic)
        if hold is None or hold.until_s <= asyncio.get_running_loop().time():
            return False
        return name is None or hold.name == name

    def hold_on(self, topic: str) -> None:
        """Let a hold last until it is released."""
        self._holds[topic] = self._holds[topic]._replace(until_s=float("inf"))

    def release(self, topic: str) -> None:
        """End a hold, if there is one."""
        self._holds.pop(topic, None)

    def forget(self, topic: str) -> None:
        """Nothing of a topic is sent on any more."""
        self._ends.pop(topic, None)

    async def released(self, topic: str) -> None:
        """Return when a topic is not held."""
        while self.is_held(topic):  # noqa: ASYNC110 - it ends with the time, too
            await asyncio.sleep(_LOOK_S)


def queues_of(topic: str, route: bodies.TopicRoute) -> list[MessageQueue]:
    """All queues of a topic, in the order that they have in a mirror."""
    return in_order(topic, {one.broker_name: one for one in route.queue_datas})


def masters(route: bodies.TopicRoute) -> dict[str, str]:
    """The addresses of brokers by name."""
    return {
        broker.broker_name: address
        for broker in route.broker_datas
        if (address := broker.broker_addrs.get(str(MASTER_ID)))
    }


def is_delayed(request: SendMessage) -> bool:
    """Whether a message waits at first: the answer has the offset of where it waits."""
    pairs = properties.parse(request.properties)
    return any(name in pairs for name in _DELAYS)
