"""Reads ranges of queues as fast as brokers give them, beside any consumer group."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from ropeway.client.columns import Columns, read_columns
from ropeway.client.config import ClientConfig
from ropeway.client.errors import ConnectionFailedError, RemotingError
from ropeway.client.instance import Instance
from ropeway.client.queue_client import QueueClient
from ropeway.client.retry import through_outages
from ropeway.client.send_request import DLQ_PREFIX, RETRY_PREFIX
from ropeway.client.subscription import parse
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.broker_admin import GetSystemTopicListFromBroker
from ropeway.gateway.wire.commands.namesrv import (
    GetAllTopicList,
    GetBrokerClusterInfo,
)
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage, PullReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from ropeway.client.connection import Response
    from ropeway.client.message import MessageQueue
    from ropeway.client.subscription import Subscription

_PULL_COUNT = 1024
"""As many as a Ropeway broker gives at once; RocketMQ's own give 32 by default."""
_PULL_BYTES = 4 * 1024 * 1024
_PULL_TIMEOUT_S = 30.0
_EXPECTED = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)


class MessagesGoneError(RemotingError):
    """What is to be read is not in the queue any more, or is not there yet."""


class BulkReader(QueueClient):
    """Looks at queues and reads ranges of them. Use it with `async with`.

    Args:
        name_server: `host:port`, several joined by semicolons.
        group: Whose reads brokers count, and whose offsets are read and stored.
        config: Times and limits.
    """

    def __init__(
        self, name_server: str, group: str, *, config: ClientConfig | None = None
    ) -> None:
        super().__init__(Instance(name_server, config or ClientConfig()), group)
        self._group = group

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic as they are now, sorted.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: No name server answers.
        """
        self._instance.ensure_started()
        return list((await self._instance.routes.fetch(topic)).read_queues)

    async def topics(self) -> list[str]:
        """The topics that are users', sorted: none of brokers, nor of groups.

        Raises:
            RemotingError: A name server or a broker does not tell.
        """
        self._instance.ensure_started()
        ask = self._instance.routes.ask
        listed = (await ask(GetAllTopicList())).json(bodies.TopicList).topic_list
        cluster = (await ask(GetBrokerClusterInfo())).json(bodies.ClusterInfo)
        not_users: set[str] = set()
        for broker in cluster.broker_addr_table.values():
            # The master, where there is one.
            address = broker.broker_addrs[min(broker.broker_addrs)]
            answer = await self._instance.connections.request(
                address, GetSystemTopicListFromBroker()
            )
            not_users.update(answer.json(bodies.TopicList).topic_list)
        return sorted(
            topic
            for topic in listed
            if topic not in not_users
            and not topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
        )

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Store the group's offsets.

        Raises:
            RemotingError: A broker did not take one; it may have taken others.
        """
        for queue, offset in offsets.items():
            await self._instance.routes.get(queue.topic)
            self._offsets.update(queue, offset)
            await self._offsets.store(queue)

    async def read(
        self,
        queue: MessageQueue,
        begin: int,
        end: int,
        expression: str = "*",
        *,
        must_be_whole: bool = True,
    ) -> AsyncGenerator[Columns, None]:
        """Read a range of a queue in order; the next part is fetched ahead.

        Args:
            queue: Where to read.
            begin: The first offset.
            end: One past the last one.
            expression: `*`, the wanted tags: `TagA || TagB`, or an `Sql` condition.
                Of tags whose hashes are equal others come along.
            must_be_whole: Whether offsets that are not there are an error; else they
                are passed over.

        Raises:
            MessagesGoneError: Some of the range is not in the queue.
            RemotingError: The broker cannot be asked, or refused.
        """
        pulls = self.read_stored(
            queue, begin, end, expression, must_be_whole=must_be_whole
        )
        async with aclosing(pulls):
            async for data in pulls:
                yield read_columns(data, begin, end)

    async def read_stored(
        self,
        queue: MessageQueue,
        begin: int,
        end: int,
        expression: str = "*",
        *,
        must_be_whole: bool = True,
    ) -> AsyncGenerator[bytes, None]:
        """The same as stored messages, back to back; some from `end` on come along."""
        if begin >= end:
            return
        # Whoever keeps a client between ranges wants to hear of a master that moved.
        await through_outages(
            lambda: self._instance.routes.fetch(queue.topic),
            self._instance.config.outage_timeout_s,
        )
        wanted = parse(queue.topic, expression, 0)
        pull = asyncio.create_task(self._pull(queue, begin, wanted))
        try:
            while begin < end:
                response = await pull
                reply = response.header(PullReply)
                if begin < reply.min_offset and must_be_whole:
                    raise _gone(queue, begin, end, f"begins at {reply.min_offset}")
                is_found = response.code == ResponseCode.SUCCESS
                after = reply.next_begin_offset
                if not is_found and after <= begin:
                    if must_be_whole:
                        raise _gone(queue, begin, end, f"ends at {reply.max_offset}")
                    return
                if after < end:
                    pull = asyncio.create_task(self._pull(queue, after, wanted))
                if is_found:
                    yield bytes(response.body)
                begin = after
        finally:
            pull.cancel()
            await asyncio.gather(pull, return_exceptions=True)

    async def _pull(
        self, queue: MessageQueue, offset: int, wanted: Subscription
    ) -> Response:
        """Ask for the next messages; a broker may be away meanwhile."""
        header = PullMessage(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=_PULL_COUNT,
            sys_flag=SUBSCRIPTION_FLAG,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=wanted.version,
            subscription=wanted.expression,
            expression_type=wanted.expression_type,
            max_msg_bytes=_PULL_BYTES,
            bulk=True,
        )

        async def ask() -> Response:
            try:
                _, address = self._instance.routes.reader(queue.broker_name)
                return await self._instance.connections.request(
                    address, header, timeout_s=_PULL_TIMEOUT_S, expect=_EXPECTED
                )
            except ConnectionFailedError:
                await self._instance.routes.refresh()
                raise

        return await through_outages(ask, self._instance.config.outage_timeout_s)


def _gone(queue: MessageQueue, begin: int, end: int, where: str) -> MessagesGoneError:
    return MessagesGoneError(
        f"offsets {begin} to {end} of queue {queue.queue_id} of topic {queue.topic!r} "
        f"on {queue.broker_name!r} are wanted, and it {where}"
    )
