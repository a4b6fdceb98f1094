"""A node whose time is the test's, and requests of consumers that pop."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ropeway.gateway.config import PopConfig
from ropeway.gateway.node import record_builder
from ropeway.gateway.pop.store import Store
from ropeway.gateway.wire import bodies, message
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.pop import (
    AckMessage,
    ChangeInvisibleTime,
    InvisibleReply,
    PopMessage,
    PopReply,
)
from ropeway.gateway.wire.receipt import BatchAck, BatchAcks
from tests.remoting import TIMEOUT_S, config, connect, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.pop.service import Pop
    from ropeway.gateway.wire.message import Message
    from tests.remoting import Frame, Remoting

GROUP = "readers"
TOPIC = "orders"
RETRY_V1 = "%RETRY%readers_orders"
RETRY_V2 = "%RETRY%readers+orders"
INVISIBLE_MS = 60_000
STAY_MS = 10_000


class Clock:
    """The node's time."""

    def __init__(self) -> None:
        self.now_ms = time.time_ns() // 1_000_000

    def __call__(self) -> int:
        return self.now_ms


class Popped(NamedTuple):
    """What a pop was answered, and what makes receipts of it."""

    frame: Frame
    reply: PopReply
    messages: list[Message]

    @property
    def offsets(self) -> list[int]:
        """Of the messages, in their queues."""
        return [one.queue_offset for one in self.messages]

    @property
    def bodies(self) -> list[bytes]:
        """Of the messages."""
        return [one.body for one in self.messages]

    def receipt(self, offset: int, queue_id: int = 0, retry: int = 0) -> str:
        """The receipt of a message, as Java's client makes it."""
        assert self.reply.start_offset_info is not None
        starts = {}
        for part in self.reply.start_offset_info.split(";"):
            kind, queue, start = part.split(" ")
            starts[kind, queue] = start
        start = starts[str(retry), str(queue_id)]
        return (
            f"{start} {self.reply.pop_time} {self.reply.invisible_time} "
            f"{self.reply.revive_qid} {retry} broker-0 {queue_id} {offset}"
        )


class Consumer:
    """A consumer that pops, on a connection of its own."""

    def __init__(self, client: Remoting, group: str = GROUP, topic: str = TOPIC):
        self.client = client
        self.group = group
        self.topic = topic

    def header(self, **changes: Any) -> PopMessage:
        """A pop that does not wait."""
        fields: dict[str, Any] = {
            "consumer_group": self.group,
            "topic": self.topic,
            "queue_id": 0,
            "max_msg_nums": 32,
            "invisible_time": INVISIBLE_MS,
            "poll_time": 0,
            "born_time": 0,
            "init_mode": 0,
            **changes,
        }
        return PopMessage(**fields)

    async def pop(self, **changes: Any) -> Popped:
        """Pop, and take the answer apart."""
        return popped(await self.client.ask(self.header(**changes)))

    async def take(self, count: int, **changes: Any) -> Popped:
        """Pop, and have so many."""
        found = await self.pop(max_msg_nums=count, **changes)
        assert len(found.messages) == count, found.frame
        return found

    async def ack(
        self,
        found: Popped,
        offset: int,
        queue_id: int = 0,
        *,
        retry: int = 0,
        text: str | None = None,
    ) -> int:
        """Acknowledge a message; the code of the answer."""
        topic = (self.topic, f"%RETRY%{self.group}_{self.topic}", RETRY_V2)[retry]
        return await self.ack_by(
            text or found.receipt(offset, queue_id, retry), offset, queue_id, topic
        )

    async def ack_by(
        self, receipt: str, offset: int, queue_id: int = 0, topic: str | None = None
    ) -> int:
        """Acknowledge a message by any receipt; the code of the answer."""
        header = AckMessage(
            consumer_group=self.group,
            topic=topic or self.topic,
            queue_id=queue_id,
            extra_info=receipt,
            offset=offset,
        )
        return (await self.client.ask(header)).code

    async def change(
        self, receipt: str, offset: int, invisible_ms: int, queue_id: int = 0
    ) -> Frame:
        """Keep a message for a time from now."""
        return await self.client.ask(
            ChangeInvisibleTime(
                consumer_group=self.group,
                topic=self.topic,
                queue_id=queue_id,
                extra_info=receipt,
                offset=offset,
                invisible_time=invisible_ms,
            )
        )

    async def batch(self, *acks: BatchAck) -> int:
        """Acknowledge messages together."""
        body = bodies.encode(BatchAcks(list(acks), "broker-0"))
        return (await self.client.ask(RequestCode.BATCH_ACK_MESSAGE, body)).code

    async def send(self, count: int, **changes: Any) -> None:
        """Send numbered messages."""
        for number in range(count):
            answer = await self.client.ask(
                sending(self.topic, **changes), b"%d" % number
            )
            assert answer.code == 0, answer.remark


def popped(frame: Frame) -> Popped:
    """An answer, taken apart."""
    return Popped(frame, frame.read(PopReply), frame.messages())


def renewed(before: str, frame: Frame) -> str:
    """The receipt after a change, as Java's client makes it."""
    reply = frame.read(InvisibleReply)
    _, _, _, _, retry, broker, queue_id, offset = before.split(" ")
    return (
        f"{offset} {reply.pop_time} {reply.invisible_time} {reply.revive_qid} {retry} "
        f"{broker} {queue_id} {offset}"
    )


class Rig:
    """A node, its clock, and a consumer."""

    def __init__(self, app: App, client: Remoting, clock: Clock) -> None:
        self.app = app
        self.clock = clock
        self.consumer = Consumer(client)

    @property
    def pop(self) -> Pop:
        """What pops."""
        return self.app.node.pop

    def committed(self, topic: str = TOPIC, queue_id: int = 0) -> int | None:
        """Where the group is, as far as it was said."""
        return self.app.node.offsets.get(GROUP, topic, queue_id)

    def in_hand(self, topic: str = TOPIC, queue_id: int = 0) -> tuple[int, int]:
        """Messages in memory and in the ledger."""
        queue = self.pop.in_flight.get((GROUP, topic, queue_id))
        return (queue.buffered, queue.kept) if queue else (0, 0)

    async def until_empty(self) -> None:
        """Wait until the ledger's store has no batch."""
        ledger = self.pop.ledger
        async with asyncio.timeout(TIMEOUT_S):
            while await ledger._journal.run(Store.page, b"", 1):  # noqa: ASYNC110 - a thread's
                await asyncio.sleep(0.002)

    def pass_time(self, ms: int) -> None:
        """Let time pass, and do what is due."""
        self.clock.now_ms += ms
        self.pop.turn()

    async def pass_time_until_done(self, ms: int) -> None:
        """Let time pass, and wait until what is due is done."""
        # A look that is under way is one at an earlier time.
        await until(self.pop.is_idle)
        self.pass_time(ms)
        await until(self.pop.is_idle)

    async def retried(self, topic: str, count: int) -> None:
        """Put messages into a retry topic, as if they had come back."""
        served = await self.app.node.topics.ensure_derived(topic, 1)
        host = message.pack_host("127.0.0.1", 1)
        partition = served.partitions[0]
        end = partition.end + count
        for number in range(count):
            record = record_builder.make_record(
                served,
                0,
                partition.next_offset,
                1,
                record_builder.NewMessage(
                    body=b"%d" % number,
                    properties="",
                    born_ms=1,
                    born_host=host,
                    store_host=host,
                    reconsume_times=1,
                ),
            )
            partition.append([record], 1, lambda *_: None)
        await until(lambda: partition.end == end)

    async def to_ledger(self) -> None:
        """Let what is in hand grow old."""
        self.pass_time(STAY_MS + 100)
        await until(lambda: not self.pop.in_flight.buffered)


@asynccontextmanager
async def rigged(
    path: Path, clock: Clock | None = None, queues: int = 1, **changes: Any
) -> AsyncIterator[Rig]:
    """A node whose time is the test's, with a topic of one queue or more."""
    clock = clock or Clock()
    settings = PopConfig(stay_ms=STAY_MS, **changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ropeway.gateway.composition.now_ms", clock)
        patch.setattr("ropeway.gateway.composition.monotonic_ms", clock)
        async with running(config(path, pop=settings)) as (app, client):
            await app.node.topics.ensure_derived(TOPIC, queues)
            rig = Rig(app, client, clock)
            await until(app.node.pop.ledger.is_open)
            yield rig


@asynccontextmanager
async def another(rig: Rig) -> AsyncIterator[Consumer]:
    """Another consumer of the group."""
    async with connect(rig.app.server.listeners[0]) as client:
        yield Consumer(client)


def bits(*offsets: int) -> str:
    """A set of acknowledged messages, counted from the start."""
    import base64

    mask = sum(1 << offset for offset in offsets)
    size = (mask.bit_length() + 7) // 8
    return base64.b64encode(mask.to_bytes(size, "little")).decode()


def of_batch(found: Popped, offsets: Sequence[int], **changes: Any) -> BatchAck:
    """An acknowledgement of messages of queue 0 that one pop took."""
    receipt = found.receipt(found.offsets[0])
    start, pop_ms, invisible_ms, revive_queue_id, *_ = map(int, receipt.split(" ")[:4])
    fields: dict[str, Any] = {
        "group": GROUP,
        "topic": TOPIC,
        "retry": "0",
        "start": start,
        "queue_id": 0,
        "revive_queue_id": revive_queue_id,
        "pop_ms": pop_ms,
        "invisible_ms": invisible_ms,
        "bits": bits(*(offset - start for offset in offsets)),
        **changes,
    }
    return BatchAck(**fields)
