"""Sending on to a migration's source, while producers are led here already.

The source stores what is sent and answers with its offsets, so nothing changes but the
way: when all producers come by it, messages can be stored here from one to the next.
For that they are held for a moment, in which the mirror gets the last one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ropeway.client.diagnosis import refusal
from ropeway.client.errors import (
    ConnectionFailedError,
    RequestTimeoutError,
    ResponseError,
)
from ropeway.client.routes import DEFAULT_TOPIC, MASTER_ID
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendMessageV2, SendReply

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.client.connection import Response
    from ropeway.client.connections import Connections
    from ropeway.gateway.wire import bodies
    from ropeway.gateway.wire.commands.send import SendMessage

HOLD_S = 2.0
"""How long senders wait at most; then messages go to the source as before."""
_SEND_S = 3.0
"""How long the source has for a message: as long as clients wait."""
_LOOK_S = 0.005
_GROUP = "ropeway-migrate"
"""The producer group of what nodes send for themselves."""
_NO_QUEUE = 1 << 30
"""No topic has so many queues."""
_ANY_CODE = range(-(1 << 31), 1 << 31)
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
        self, request: SendMessage, body: bytes, ours: Collection[str]
    ) -> Response:
        """Have the source store a message or a batch; its answer, whatever that says.

        Raises:
            RemotingError: It did not answer, or has no broker for it.
            SourceError: Nobody says where it has the topic.
        """
        topic = request.topic
        self._under_way[topic] += 1
        try:
            address = await self._address(topic, ours)
            answer = await self._connections.request(
                address, request, body, timeout_s=_SEND_S, expect=_ANY_CODE
            )
            if answer.code == ResponseCode.SUCCESS and not is_delayed(request):
                self._acknowledged(topic, answer.header(SendReply))
            return answer
        finally:
            self._under_way[topic] -= 1

    async def _address(self, topic: str, ours: Collection[str]) -> str:
        found = await self._routes.find(topic, ours)
        for broker in found.route.broker_datas if found is not None else ():
            if address := broker.broker_addrs.get(str(MASTER_ID)):
                return address
        raise ConnectionFailedError(
            "the migration's source", f"has no broker for topic {topic:.200}"
        )

    async def refusal(self, topic: str, ours: Collection[str]) -> str | None:
        """Ask why the source lets this node send nothing to a topic; None if it does.

        Brokers look at who asks before they see that there is no such queue, so
        nothing is stored.

        Raises:
            RemotingError: It did not answer, or has no broker for it.
            SourceError: Nobody says where it has the topic.
        """
        address = await self._address(topic, ours)
        request = SendMessageV2(
            producer_group=_GROUP,
            topic=topic,
            default_topic=DEFAULT_TOPIC,
            default_topic_queue_nums=1,
            queue_id=_NO_QUEUE,
            sys_flag=0,
            born_timestamp=0,
            flag=0,
        )
        answer = await self._connections.request(
            address, request, b"?", timeout_s=_SEND_S, expect=_ANY_CODE
        )
        return refusal(ResponseError(answer.code, answer.remark, address))

    def _acknowledged(self, topic: str, reply: SendReply) -> None:
        ends = self._ends.setdefault(topic, {})
        end = reply.queue_offset + reply.msg_id.count(",") + 1
        ends[reply.queue_id] = max(end, ends.get(reply.queue_id, 0))

    def ends(self, topic: str) -> dict[int, int]:
        """Behind the last message that was acknowledged, by queue.

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
                raise RequestTimeoutError(
                    "the migration's source", f"no answers within {HOLD_S:g} s"
                )
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


def is_delayed(request: SendMessage) -> bool:
    """Whether a message waits at first: the answer has the offset of where it waits."""
    pairs = properties.parse(request.properties)
    return any(name in pairs for name in _DELAYS)
