"""What the page asks of brokers: questions of administrators, over remoting.

Each goes to every broker that it concerns, many at a time. No consumer group is
pretended: messages are read by their places in queues, as `mqadmin queryCq` and
`queryMsgById` read them, so that looking changes nothing.
"""

from __future__ import annotations

import asyncio
import secrets
import zlib
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import structlog

from ropeway.client import send_request
from ropeway.client.admin import Admin
from ropeway.client.errors import (
    AdminError,
    ConnectionFailedError,
    RemotingError,
    ResponseError,
    TopicNotFoundError,
)
from ropeway.client.lags import read_spans
from ropeway.client.received import read_answer
from ropeway.client.routes import MASTER_ID
from ropeway.gateway.wire import admin_bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    GetConsumerConnectionList,
    GetTopicStats,
    QueryTopicConsumeByWho,
)
from ropeway.gateway.wire.commands.broker_admin import (
    GetAllProducerInfo,
    GetBrokerRuntimeInfo,
    QueryConsumeQueue,
    ViewBrokerStatsData,
)
from ropeway.gateway.wire.commands.offsets import Offset, SearchOffset
from ropeway.gateway.wire.commands.query import ViewMessage
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack, RecallMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable

    from ropeway.client.connection import Response
    from ropeway.client.lags import QueueSpan
    from ropeway.client.message import (
        Message,
        MessageQueue,
        ReceivedMessage,
        SendResult,
    )
    from ropeway.gateway.wire.header import Header
    from ropeway.gateway.wire.recall import RecallHandle

T = TypeVar("T")

log = structlog.get_logger(__name__)

AT_ONCE = 64
"""Requests that wait for answers, of one question."""
MASTERS_FOR_S = 2.0
"""How old the page's knowledge of masters may be."""
_NONE_THERE = (ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR)
"""What a broker answers that has counted nothing, or knows nobody."""
_REPLAY_LEVEL = 1
"""The shortest delay there is; level 0 would leave the choice to the broker."""


_MOST_SENT_BYTES = 4 * 1024 * 1024
"""As brokers have it by default; the site takes less anyway."""
_PRODUCER_GROUP = "ropeway-page"


class Counted(NamedTuple):
    """How much of something there was."""

    rate: float
    """In a second of the last minute."""
    day: int
    """In the last day."""


class Console(Admin):
    """All questions of the page. Use it with `async with`."""

    _known: dict[str, str] | None = None
    _known_until_s = 0.0

    async def masters_by_name(self) -> dict[str, str]:
        """The address of each broker's master, of brokers that have one."""
        now_s = asyncio.get_running_loop().time()
        if self._known is None or now_s > self._known_until_s:
            info = await self.cluster_info()
            self._known = {
                name: broker.broker_addrs[str(MASTER_ID)]
                for name, broker in sorted(info.broker_addr_table.items())
                if str(MASTER_ID) in broker.broker_addrs
            }
            self._known_until_s = now_s + MASTERS_FOR_S
        return self._known

    async def runtime(self, address: str) -> dict[str, str]:
        """How a broker does, in its own words."""
        response = await self._instance.connections.request(
            address, GetBrokerRuntimeInfo()
        )
        return response.json(admin_bodies.KvTable).table

    async def spans(self, topic: str, brokers: Iterable[str]) -> list[QueueSpan]:
        """What each queue of a topic holds on some brokers."""
        answers = await self._each(brokers, GetTopicStats(topic=topic))
        return sorted(
            (span for one in answers for span in read_spans(one.body)),
            key=lambda span: span.queue,
        )

    async def counted(self, name: str, key: str, brokers: Iterable[str]) -> Counted:
        """How much of something there was of late."""
        asked = ViewBrokerStatsData(stats_name=name, stats_key=key)
        answers = await self._each(brokers, asked, expect=_NONE_THERE)
        found = [
            one.json(admin_bodies.BrokerStats)
            for one in answers
            if one.code == ResponseCode.SUCCESS
        ]
        return Counted(
            sum(one.stats_minute.tps for one in found),
            sum(one.stats_day.sum for one in found),
        )

    async def groups_of(self, topic: str, brokers: Iterable[str]) -> list[str]:
        """The groups that have consumed a topic."""
        answers = await self._each(brokers, QueryTopicConsumeByWho(topic=topic))
        found: set[str] = set()
        for one in answers:
            found |= set(one.json(admin_bodies.GroupList).group_list)
        return sorted(found)

    async def consumers_of(self, group: str) -> list[admin_bodies.ConsumerConnection]:
        """Who consumes in a group, as each broker knows it."""
        asked = GetConsumerConnectionList(consumer_group=group)
        expect = (ResponseCode.SUCCESS, ResponseCode.CONSUMER_NOT_ONLINE)
        answers = await self._each(await self.masters_by_name(), asked, expect=expect)
        return [
            one.json(admin_bodies.ConsumerConnection)
            for one in answers
            if one.code == ResponseCode.SUCCESS
        ]

    async def producers(self) -> dict[str, dict[str, admin_bodies.ProducerInfo]]:
        """Every producer that is connected to some broker: by group, by client id."""
        found: dict[str, dict[str, admin_bodies.ProducerInfo]] = {}
        for one in await self._each(await self.masters_by_name(), GetAllProducerInfo()):
            for group, members in one.json(admin_bodies.ProducerTable).data.items():
                known = found.setdefault(group, {})
                known |= {member.client_id: member for member in members}
        return found

    async def read(
        self, queue: MessageQueue, offset: int, count: int
    ) -> list[ReceivedMessage]:
        """The messages of a queue from an offset on; those that are still there."""
        address = await self._master(queue.broker_name)
        asked = QueryConsumeQueue(
            topic=queue.topic, queue_id=queue.queue_id, index=offset, count=count
        )
        response = await self._instance.connections.request(address, asked)
        entries = response.json(admin_bodies.QueueEntries).queue_data
        found = await self.gather(
            self.view_at(queue.broker_name, one.physic_offset, queue.topic)
            for one in entries
        )
        return [one for one in found if one is not None]

    async def offset_at(self, queue: MessageQueue, time_ms: int) -> int:
        """The offset of a queue's first message that was stored at a time or later."""
        asked = SearchOffset(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=time_ms
        )
        response = await self._instance.connections.request(
            await self._master(queue.broker_name), asked
        )
        return response.header(Offset).offset

    async def view_at(
        self, broker: str, message_id: int, topic: str
    ) -> ReceivedMessage | None:
        """The message of an id on a broker; None where there is none any more."""
        response = await self._instance.connections.request(
            await self._master(broker),
            ViewMessage(offset=message_id, topic=topic),
            expect=_NONE_THERE,
        )
        if response.code != ResponseCode.SUCCESS:
            return None
        (message,) = await read_answer(response.body, broker)
        return message

    async def send(self, message: Message) -> SendResult:
        """Store a message in one of its topic's queues.

        Raises:
            ValueError: No broker would take it; says what is allowed.
            TopicNotFoundError: There is no such topic.
            RemotingError: A broker cannot be reached, or refused.
        """
        send_request.check(message, _MOST_SENT_BYTES)
        queues = (await self.route(message.topic)).write_queues
        if not queues:
            raise AdminError(f"topic {message.topic} has no queue to write to")
        key = secrets.token_hex(16).upper()
        queue = queues[zlib.crc32(key.encode()) % len(queues)]
        pairs = send_request.wire_properties(message, key)
        response = await self.ask(
            await self._master(queue.broker_name),
            send_request.single_request(_PRODUCER_GROUP, queue, pairs),
            message.body,
            expect=send_request.STATUS_OF_CODE,
        )
        (result,) = send_request.results(response, queue, [key])
        return result

    async def recall(self, handle: RecallHandle, text: str) -> None:
        """Take a message back that waits for its time; `text` is the handle as it came.

        Raises:
            RemotingError: The broker cannot be reached, or refused.
        """
        asked = RecallMessage(
            topic=handle.topic,
            recall_handle=text,
            producer_group=_PRODUCER_GROUP,
            bname=handle.broker,
        )
        await self.ask(await self._master(handle.broker), asked)

    async def replay(self, group: str, dead: ReceivedMessage) -> None:
        """Give a group's dead letter to it once more; the letter itself stays."""
        asked = ConsumerSendMsgBack(
            offset=dead.message_id,
            group=group,
            delay_level=_REPLAY_LEVEL,
            origin_msg_id=dead.msg_id,
            origin_topic=dead.queue.topic,
            # One more than it has had, or it would be dead at once.
            max_reconsume_times=dead.reconsume_times + 1,
        )
        address = await self._master(dead.queue.broker_name)
        await self._instance.connections.request(address, asked)

    async def gather(self, work: Iterable[Awaitable[T]]) -> list[T]:
        """Do work side by side, but no more than is good for brokers."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(awaitable: Awaitable[T]) -> T:
            async with slots:
                return await awaitable

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(each)) for each in work]
        except* RemotingError as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _master(self, broker: str) -> str:
        try:
            return (await self.masters_by_name())[broker]
        except KeyError:
            raise ConnectionFailedError(broker, "has no master") from None

    async def _each(
        self,
        brokers: Iterable[str],
        header: Header,
        *,
        expect: Collection[int] = (ResponseCode.SUCCESS,),
    ) -> list[Response]:
        """Ask those of the brokers that have a master."""
        masters = await self.masters_by_name()
        return await self.gather(
            self._instance.connections.request(masters[name], header, expect=expect)
            for name in brokers
            if name in masters
        )


def in_words(error: RemotingError) -> str:
    """What an error is to somebody who looks at the page."""
    if isinstance(error, ResponseError):
        return f"the broker at {error.address} answered: {error.remark or error.name}"
    if isinstance(error, ConnectionFailedError):
        return f"the broker at {error.address} does not answer"
    if isinstance(error, TopicNotFoundError):
        return "there is no such topic"
    if isinstance(error, AdminError):
        return str(error)
    log.warning("a broker was not understood", reason=str(error))
    return "a broker's answer was not understood"
