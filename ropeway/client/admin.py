"""Looking at topics, groups and messages, and changing topics.

Source: DefaultMQAdminExtImpl.java and MQAdminImpl.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.client import compacted, queue_bounds, topic_configs
from ropeway.client.admin_requests import AskingClient
from ropeway.client.decompression import MAX_ANSWER_BYTES
from ropeway.client.errors import BadResponseError
from ropeway.client.lags import QueueLag, QueueSpan, read_lags
from ropeway.client.received import read_answer
from ropeway.client.routes import DEFAULT_TOPIC, PERM_READ, PERM_WRITE
from ropeway.client.send_request import RETRY_PREFIX
from ropeway.gateway.wire import bodies, host_port
from ropeway.gateway.wire.access_bodies import AccessExplanation
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    CreateTopic,
    DeleteGroup,
    DeleteTopic,
    GetAllGroupConfig,
    GetConsumeStats,
)
from ropeway.gateway.wire.commands.clients import GetConsumerListByGroup
from ropeway.gateway.wire.commands.explain import ExplainAccess
from ropeway.gateway.wire.commands.namesrv import (
    DeleteTopicInNamesrv,
    GetAllTopicList,
)
from ropeway.gateway.wire.commands.query import QueryMessage, ViewMessage
from ropeway.gateway.wire.commands.timers import MAX_PAGE, ListTimers, TimerPage
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.client.message import MessageQueue, ReceivedMessage
    from ropeway.gateway.wire.commands.compaction import TopicCompaction
    from ropeway.gateway.wire.commands.timers import WaitingMessage

PERM_READ_WRITE = PERM_READ | PERM_WRITE
MAX_TIME_MS = (1 << 63) - 1


class _Groups(msgspec.Struct, rename="camel", frozen=True):
    subscription_group_table: dict[str, msgspec.Raw]


class Admin(AskingClient):
    """Administers what a name server knows. Use it with `async with`.

    Args:
        name_server: `host:port`, several joined by semicolons.
        config: Times and limits.
    """

    # Topics.

    async def topics(self) -> list[str]:
        """The names of all topics, those of brokers and groups among them, sorted.

        Raises:
            RemotingError: No name server answers.
        """
        response = await self._instance.routes.ask(GetAllTopicList())
        return sorted(response.json(bodies.TopicList).topic_list)

    async def create_topic(
        self,
        topic: str,
        queues: int = 8,
        *,
        perm: int = PERM_READ_WRITE,
        order: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic on every broker, or change it.

        Args:
            topic: Its name.
            queues: How many queues it gets on each broker.
            perm: Sum of 4 read, 2 write.
            order: Whether its messages are meant to be consumed in order.
            attributes: Those to set, like `entry.format` to `PULSAR`; others stay.

        Raises:
            ResponseError: A broker refused; others may have done it.
            RemotingError: A server cannot be reached.
        """
        header = CreateTopic(
            topic=topic,
            default_topic=DEFAULT_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            order=order,
            attributes=",".join(
                f"+{name}={value}" for name, value in (attributes or {}).items()
            )
            or None,
            all_brokers=True,
        )
        await self.ask_masters(header)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic with its messages, from the brokers and the name servers.

        Raises:
            ResponseError: A server refused; others may have done it.
            RemotingError: A server cannot be reached.
        """
        await self.ask_masters(DeleteTopic(topic=topic))
        await self._instance.routes.ask(DeleteTopicInNamesrv(topic=topic))

    async def describe_topic(self, topic: str) -> list[QueueSpan]:
        """What each queue of a topic holds.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: A server cannot be reached.
        """
        route = await self._instance.routes.fetch(topic)
        return list(await asyncio.gather(*(self.span(q) for q in route.read_queues)))

    async def span(self, queue: MessageQueue) -> QueueSpan:
        """What one queue holds.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: A server cannot be reached.
        """
        begin = await queue_bounds.begin_offset(self._instance, queue)
        end = await queue_bounds.end_offset(self._instance, queue)
        return QueueSpan(queue, begin, end)

    async def offset_at(self, queue: MessageQueue, time_ms: int) -> int:
        """The offset of a queue's first message stored at or after a time.

        Where there is none, it is the queue's end.

        Args:
            queue: The queue.
            time_ms: Milliseconds since 1970, by the broker's clock.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: A server cannot be reached.
        """
        return await queue_bounds.offset_for_timestamp(self._instance, queue, time_ms)

    async def topic_configs(self, topic: str) -> list[bodies.TopicConfig]:
        """How a topic is set up on each broker that has it.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: A server cannot be reached.
        """
        return await topic_configs.read(self, topic)

    async def clusters(self) -> dict[str, list[str]]:
        """The names of all clusters, each with those of its brokers.

        Raises:
            RemotingError: No name server answers.
        """
        return (await self.cluster_info()).cluster_addr_table

    # Groups.

    async def groups(self) -> list[str]:
        """The names of all consumer groups, sorted.

        Raises:
            RemotingError: A server cannot be reached.
        """
        names: set[str] = set()
        for response in await self.ask_masters(GetAllGroupConfig()):
            names |= response.json(_Groups).subscription_group_table.keys()
        return sorted(names)

    async def consumers(self, group: str) -> list[str]:
        """The ids of the clients that consume in a group now, sorted.

        Raises:
            RemotingError: A server cannot be reached.
        """
        found: set[str] = set()
        for response in await self.ask_masters(
            GetConsumerListByGroup(consumer_group=group),
            # What a broker says that knows nobody in the group.
            expect=(ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR),
        ):
            if response.code == ResponseCode.SUCCESS:
                found |= set(response.json(bodies.ConsumerIdList).consumer_id_list)
        return sorted(found)

    async def describe_group(self, group: str) -> list[QueueLag]:
        """How far a group has come in each queue that it reads.

        Raises:
            RemotingError: A server cannot be reached, or refused.
        """
        lags: list[QueueLag] = []
        for response in await self.ask_masters(GetConsumeStats(consumer_group=group)):
            try:
                lags += read_lags(response.body)
            except msgspec.DecodeError as error:
                raise BadResponseError(f"{response.address}: {error}") from error
        return sorted(lags, key=lambda lag: lag.queue)

    async def delete_group(self, group: str) -> None:
        """Delete a group with its offsets and its retry topic.

        Raises:
            ResponseError: A broker refused; others may have done it.
            RemotingError: A server cannot be reached.
        """
        await self.ask_masters(DeleteGroup(group_name=group, clean_offset=True))
        await self.delete_topic(f"{RETRY_PREFIX}{group}")

    # Messages.

    async def waiting(
        self, topic: str | None = None, *, max_messages: int = 100
    ) -> list[WaitingMessage]:
        """Messages that wait for their time, on each broker about the soonest first.

        RocketMQ's own brokers do not tell.

        Args:
            topic: Only those for it.
            max_messages: The most that each broker tells.

        Raises:
            ResponseError: A broker refused.
            RemotingError: A server cannot be reached.
        """
        found: list[WaitingMessage] = []
        for address in await self.masters():
            left, after = max_messages, ""
            while left > 0:
                asked = ListTimers(
                    max_nums=min(left, MAX_PAGE), topic=topic, after=after
                )
                response = await self._instance.connections.request(address, asked)
                page = response.json(TimerPage)
                found += page.messages
                left -= len(page.messages)
                if page.next is None:
                    break
                after = page.next
        return found

    # Access control.

    async def explain_access(
        self, principal: str, action: str, resource: str, address: str
    ) -> AccessExplanation:
        """What access control would decide, and why; RocketMQ's brokers do not tell.

        Args:
            principal: Whose request it would be.
            action: PUB, SUB, CREATE, UPDATE, DELETE, GET or LIST.
            resource: Kind and name: `topic:orders`.
            address: The IP address that it would come from.

        Raises:
            ResponseError: The server refused, or does not know of access control.
            RemotingError: No server can be reached.
        """
        asked = ExplainAccess(principal, action, resource, address)
        response = await self._instance.routes.ask(asked)
        return response.json(AccessExplanation)

    async def view(
        self, offset_msg_id: str, topic: str | None = None
    ) -> ReceivedMessage:
        """Read the message that an offsetMsgId names, from the broker it names.

        Args:
            offset_msg_id: 32 or 56 hexadecimal digits.
            topic: The message's topic, where it is known.

        Raises:
            ValueError: It is no such id.
            ResponseError: The broker does not have the message.
            RemotingError: The broker cannot be reached.
        """
        self._instance.ensure_started()
        try:
            place = parse_offset_msg_id(offset_msg_id)
        except MessageError as error:
            raise ValueError(str(error)) from error
        response = await self._instance.connections.request(
            host_port.join(place.host, place.port),
            ViewMessage(offset=place.message_id, topic=topic),
        )
        (message,) = await read_answer(response.body, "")
        return message

    async def query(
        self,
        topic: str,
        key: str,
        *,
        max_messages: int = 32,
        begin_ms: int = 0,
        end_ms: int = MAX_TIME_MS,
        is_unique_key: bool = False,
    ) -> list[ReceivedMessage]:
        """Find messages by one of their keys.

        Args:
            topic: Where to look.
            key: The key, as a whole word.
            max_messages: The most that each broker looks up.
            begin_ms: Stored at or after, in milliseconds since 1970.
            end_ms: Stored at or before.
            is_unique_key: The key is the `msg_id` of a `SendResult`.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: A server cannot be reached.
        """
        route = await self._instance.routes.fetch(topic)
        header = QueryMessage(
            topic=topic,
            key=key,
            max_num=max_messages,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            unique_key_query=is_unique_key,
        )
        found: list[ReceivedMessage] = []
        for name in sorted(route.brokers):
            _, address = self._instance.routes.reader(name)
            response = await self._instance.connections.request(
                address,
                header,
                expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
            )
            if response.code == ResponseCode.SUCCESS:
                found += await read_answer(response.body, name, MAX_ANSWER_BYTES)
        # Brokers look up by a hash of the key.
        return [m for m in found if key == m.msg_id or key in m.keys]

    # Compacted topics.

    async def latest(self, topic: str, key: str) -> ReceivedMessage | None:
        """The newest message of a compacted topic with a key; None where there is none.

        RocketMQ's own brokers do not tell.

        Args:
            topic: Its attribute cleanup.policy is COMPACTION.
            key: All of the message's keys, joined by spaces.

        Raises:
            TopicNotFoundError: There is no such topic.
            ResponseError: It is not compacted.
            RemotingError: A server cannot be reached.
        """
        return await compacted.latest(self._instance, topic, key)

    async def compaction(
        self, topic: str, *, force: bool = False
    ) -> list[TopicCompaction]:
        """How far compaction of a topic is, on each broker.

        Args:
            topic: Its attribute cleanup.policy is COMPACTION.
            force: Compact all that is there by now, and answer when that is done.

        Raises:
            TopicNotFoundError: There is no such topic.
            ResponseError: It is not compacted, or could not be.
            RemotingError: A server cannot be reached.
        """
        return await compacted.look(self._instance, topic, force=force)
