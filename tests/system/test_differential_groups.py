"""Administrators of groups are answered on Ropeway as on RocketMQ 5.5.0."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.admin import (
    CreateGroup,
    CreateTopic,
    DeleteGroup,
    GetConsumeStats,
    GetTopicStats,
    QueryTopicConsumeByWho,
)
from ropeway.gateway.wire.commands.callbacks import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
)
from ropeway.gateway.wire.commands.group_admin import (
    CloneGroupOffset,
    GetConsumerStatus,
    GetGroupConfig,
    QueryConsumeTimeSpan,
    QueryCorrectionOffset,
    QuerySubscriptionByConsumer,
    QueryTopicsByConsumer,
    ResetOffset,
)
from ropeway.gateway.wire.commands.offsets import (
    QueryConsumerOffset,
    UpdateConsumerOffset,
)
from ropeway.gateway.wire.commands.send import SendReply
from tests.remoting import Frame, Remoting, beat
from tests.requests import pulling, sending
from tests.system.rocketmq import RocketMQ
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.wire.header import Header

pytestmark = [pytest.mark.server, pytest.mark.slow]

TOPIC, GROUP = "orders", "readers"
_TIME = re.compile(rb"\d{13}")
_ADDRESS = re.compile(rb"127\.0\.0\.1:\d+")
_RATE = re.compile(rb'("topicPutTps":|"consumeTps":)[\d.E-]+')
"""RocketMQ's of the last minute, when its sampling has seen the messages; ours is 0."""
_ENTRY = re.compile(rb"\{[^{}]*\}:(?:\{[^{}]*\}|-?\d+)")


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """The ports of both brokers."""
    servers = [
        RocketMQ(tmp_path_factory.mktemp("rocketmq")),
        Ropeway(tmp_path_factory.mktemp("ropeway")),
    ]
    try:
        for server in servers:
            server.start()
        yield [server.broker_port for server in servers]
    finally:
        for server in servers:
            server.kill()


class Administrator:
    """Asks one broker, and notes what it is answered."""

    def __init__(self, client: Remoting) -> None:
        self.client = client
        self.seen: list[object] = []

    async def ask(self, header: Header, body: bytes = b"") -> Frame:
        """Ask something whose answer is the same on both."""
        answer = await self.client.ask(header, body)
        self.seen.append([type(header).__name__, answer.code, comparable(answer)])
        return answer

    async def where(self, *groups: str) -> None:
        """Note where groups are."""
        for group in groups:
            for queue_id in range(2):
                answer = await self.client.ask(
                    QueryConsumerOffset(
                        consumer_group=group,
                        topic=TOPIC,
                        queue_id=queue_id,
                        set_zero_if_not_found=False,
                    )
                )
                self.seen.append([group, queue_id, answer.fields.get("offset")])


def comparable(answer: Frame) -> object:
    """A body without times, its maps of queues in order; or why there is none."""
    if answer.code:
        return answer.remark
    body = _RATE.sub(rb"\g<1>0", _ADDRESS.sub(b"", _TIME.sub(b"0", answer.body)))
    entries = sorted(_ENTRY.findall(body))
    if entries:
        return [entries, re.sub(rb"[{},]+", b"", _ENTRY.sub(b"", body))]
    # Java's brokers write numbers as names without quotes.
    quoted = re.sub(rb"([{,])(\d+):", rb'\1"\2":', body)
    return msgspec.json.decode(quoted) if quoted else None


async def prepare(client: Remoting) -> list[tuple[str, int]]:
    """A topic with messages and a group in the middle of it; their ids and times."""
    await client.ask(
        CreateTopic(
            topic=TOPIC,
            default_topic="TBW102",
            read_queue_nums=2,
            write_queue_nums=2,
            perm=6,
        )
    )
    for name in (GROUP, "others", "copies"):
        await client.ask(
            CreateGroup(), bodies.encode(bodies.GroupConfig(group_name=name))
        )
    ids = []
    for _ in range(6):
        answer = await client.ask(sending(TOPIC), b"hello")
        ids.append(answer.read(SendReply).msg_id)
        # Store times differ, so that a time means one message.
        await asyncio.sleep(0.02)
    found = []
    async with asyncio.timeout(60):
        # A real broker gives messages to consumers a moment after it has them.
        while len(found) < len(ids):
            found = (await client.ask(pulling(TOPIC, group="others"))).messages()
    for queue_id, offset in ((0, 4), (1, 0)):
        await commit(client, GROUP, queue_id, offset)
    return [(one, message.store_ms) for one, message in zip(ids, found, strict=True)]


async def commit(client: Remoting, group: str, queue_id: int, offset: int) -> None:
    await client.ask(
        UpdateConsumerOffset(
            consumer_group=group, topic=TOPIC, queue_id=queue_id, commit_offset=offset
        )
    )


def to(time_ms: int, **changes: object) -> ResetOffset:
    fields = {"group": GROUP, "topic": TOPIC, "is_force": True, **changes}
    return ResetOffset(timestamp=time_ms, **fields)


async def look(port: int) -> list[object]:
    """Everything an administrator asks about a group, and does with it."""
    client = Remoting(*await asyncio.open_connection("127.0.0.1", port))
    try:
        admin = Administrator(client)
        messages = await prepare(client)
        times = [time_ms for _, time_ms in messages]
        # Offline: as it is, then moved about.
        await admin.ask(GetConsumeStats(consumer_group=GROUP))
        await admin.ask(GetConsumeStats(consumer_group="nobody"))
        await admin.ask(GetConsumeStats(consumer_group=GROUP, topic="none"))
        await admin.ask(GetTopicStats(topic=TOPIC))
        await admin.ask(QueryTopicConsumeByWho(topic=TOPIC))
        await admin.ask(QueryTopicsByConsumer(group="nobody"))
        await admin.ask(QueryConsumeTimeSpan(topic="none", group=GROUP))
        await admin.ask(QueryCorrectionOffset(compare_group=GROUP, topic=TOPIC))
        await admin.ask(QuerySubscriptionByConsumer(group=GROUP, topic=TOPIC))
        await admin.ask(GetGroupConfig(group=GROUP))
        for reset in (
            to(times[0] - 1000),
            to(times[2]),
            to(times[-1] + 60_000),
            to(-1),
            to(0, queue_id=0, offset=2),
            to(0, queue_id=0, offset=99),
            to(times[3], queue_id=0),
            to(0, topic="none"),
            to(0, group="nobody"),
        ):
            await admin.ask(reset)
            await admin.where(GROUP)
        # What is committed now is passed over, until somebody has pulled from there.
        await commit(client, GROUP, 0, 6)
        await admin.where(GROUP)
        moved = await client.ask(pulling(TOPIC, 6))
        admin.seen.append([moved.code, moved.fields["nextBeginOffset"]])
        await client.ask(pulling(TOPIC, 3))
        await commit(client, GROUP, 0, 5)
        await admin.where(GROUP)
        await admin.ask(
            CloneGroupOffset(src_group=GROUP, dest_group="copies", topic=TOPIC)
        )
        await admin.where(GROUP, "copies")
        # Who is not there.
        await admin.ask(GetConsumerRunningInfo(consumer_group=GROUP, client_id="c1"))
        await admin.ask(
            ConsumeMessageDirectly(
                consumer_group=GROUP, client_id="c1", msg_id=messages[0][0]
            )
        )
        # Online.
        await beat(client, "c1", GROUP, topic=TOPIC, version=time.time_ns() // 10**6)
        await admin.ask(to(0))
        await admin.where(GROUP)
        for _ in range(2):
            moved = await client.ask(pulling(TOPIC, 5))
            admin.seen.append(moved.fields["nextBeginOffset"])
            await client.ask(pulling(TOPIC, 0))
        await admin.ask(GetConsumeStats(consumer_group=GROUP))
        await admin.ask(QuerySubscriptionByConsumer(group=GROUP, topic="none"))
        await admin.ask(GetConsumerStatus(topic=TOPIC, group=GROUP, client_addr="c2"))
        await admin.ask(DeleteGroup(group_name=GROUP, clean_offset=True))
        await admin.where(GROUP)
        return admin.seen
    finally:
        await client.close()


def test_a_group_is_shown_and_moved_alike(brokers: list[int]) -> None:
    theirs, ours = (asyncio.run(look(port)) for port in brokers)
    pairs = zip(ours, theirs, strict=True)
    assert not [(one, other) for one, other in pairs if one != other]
