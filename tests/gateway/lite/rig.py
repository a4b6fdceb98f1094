"""A node whose time is the test's, and requests of consumers of lite topics."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands import lite
from ropeway.gateway.wire.commands.pop import (
    AckMessage,
    ChangeInvisibleTime,
    InvisibleReply,
)
from ropeway.routing.api import Group, Topic
from tests.gateway.pop.rig import Clock
from tests.remoting import config, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.wire.message import Message
    from tests.remoting import Remoting

PARENT = "rooms"
GROUP = "readers"
QUEUES = 4
INVISIBLE_MS = 60_000


class Found:
    """What a pop was answered."""

    def __init__(self, reply: lite.PopLiteReply, messages: list[Message]) -> None:
        self.reply = reply
        self.messages = messages

    @property
    def bodies(self) -> list[str]:
        """Of the messages."""
        return [one.body.decode() for one in self.messages]

    @property
    def counts(self) -> list[int]:
        """How often each came before."""
        text = self.reply.order_count_info
        return [int(count) for count in text.split(";")] if text else []

    def receipt(self, at: int = 0) -> str:
        """The receipt of a message."""
        one, reply = self.messages[at], self.reply
        return (
            f"{one.queue_offset} {reply.pop_time} {reply.invisible_time} "
            f"{reply.revive_qid} 0 broker-0 {one.queue_id} {one.queue_offset}"
        )


class Rig:
    """A node, its clock, and a client."""

    def __init__(self, app: App, client: Remoting, clock: Clock) -> None:
        self.app = app
        self.client = client
        self.clock = clock

    @property
    def lite(self) -> Any:
        """What the node knows of lite topics."""
        return self.app.node.lite

    async def send(self, name: str, *bodies_: str, topic: str = PARENT) -> None:
        """Send messages of a lite topic, and wait until they are noted."""
        for body in bodies_:
            asked = sending(topic, pairs={"__LITE_TOPIC": name})
            answer = await self.client.ask(asked, body.encode())
            assert answer.code == 0, answer.remark
        await until(self.lite.is_idle)

    async def sync(
        self,
        action: str,
        *names: str,
        client_id: str = "one",
        option: lite.OffsetOption | None = None,
        **changes: Any,
    ) -> int:
        """Say what a client wants; the code of the answer."""
        wanted = {
            "action": action,
            "client_id": client_id,
            "group": GROUP,
            "topic": PARENT,
            "lite_topic_set": list(names),
            "offset_option": option,
            **changes,
        }
        body = lite.LiteSubscriptions([lite.LiteSubscription(**wanted)])
        answer = await self.client.ask(lite.LiteSubscriptionCtl(), bodies.encode(body))
        assert answer.code == 0 or answer.remark
        return answer.code

    async def add(self, *names: str, client_id: str = "one") -> None:
        """Subscribe."""
        assert await self.sync(lite.PARTIAL_ADD, *names, client_id=client_id) == 0

    def header(self, **changes: Any) -> lite.PopLiteMessage:
        """A pop that does not wait."""
        fields: dict[str, Any] = {
            "client_id": "one",
            "consumer_group": GROUP,
            "topic": PARENT,
            "max_msg_num": 32,
            "invisible_time": INVISIBLE_MS,
            "poll_time": 0,
            "born_time": 0,
            **changes,
        }
        return lite.PopLiteMessage(**fields)

    async def pop(self, **changes: Any) -> Found:
        """Pop."""
        answer = await self.client.ask(self.header(**changes))
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT)
        return Found(answer.read(lite.PopLiteReply), answer.messages())

    async def ack(self, found: Found, at: int = 0, name: str = "a") -> int:
        """Acknowledge a message; the code of the answer."""
        one = found.messages[at]
        header = AckMessage(
            consumer_group=GROUP,
            topic=PARENT,
            queue_id=one.queue_id,
            extra_info=found.receipt(at),
            offset=one.queue_offset,
            lite_topic=name,
        )
        return (await self.client.ask(header)).code

    async def keep(
        self, found: Found, invisible_ms: int, at: int = 0, *, suspend: bool = False
    ) -> InvisibleReply | None:
        """Keep a message for a time from now; None where it is not out so."""
        one = found.messages[at]
        answer = await self.client.ask(
            ChangeInvisibleTime(
                consumer_group=GROUP,
                topic=PARENT,
                queue_id=one.queue_id,
                extra_info=found.receipt(at),
                offset=one.queue_offset,
                invisible_time=invisible_ms,
                lite_topic="a",
                suspend=suspend,
            )
        )
        return answer.read(InvisibleReply) if answer.code == 0 else None

    async def pass_time(self, ms: int) -> None:
        """Let time pass, and do what is due."""
        self.clock.now_ms += ms
        self.lite.turn()
        await until(self.lite.is_idle)


@asynccontextmanager
async def rigged(
    path: Path,
    clock: Clock | None = None,
    *,
    attributes: dict[str, str] | None = None,
    of_group: dict[str, str] | None = None,
    **changes: Any,
) -> AsyncIterator[Rig]:
    """A node with a parent topic and a group that consumes its lite topics.

    Args:
        path: Where it keeps things.
        clock: Its time.
        attributes: More of the topic's.
        of_group: More of the group's.
        changes: Of its configuration.
    """
    clock = clock or Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ropeway.gateway.composition.now_ms", clock)
        patch.setattr("ropeway.gateway.composition.monotonic_ms", clock)
        patch.setattr("ropeway.gateway.processors.send_store.now_ms", clock)
        async with running(config(path, **changes)) as (app, client):
            await put_topic(app, PARENT, attributes)
            await app.node.groups.put(
                Group(
                    name=GROUP,
                    attributes={"lite.bind.topic": PARENT, **(of_group or {})},
                )
            )
            rig = Rig(app, client, clock)
            await until(rig.lite.is_idle)
            yield rig


async def put_topic(
    app: App, name: str, attributes: dict[str, str] | None = None
) -> None:
    """Make a topic with lite topics."""
    await app.node.topics.put(
        Topic(
            name=name,
            read_queue_nums=QUEUES,
            write_queue_nums=QUEUES,
            attributes={"message.type": "LITE", **(attributes or {})},
        )
    )
