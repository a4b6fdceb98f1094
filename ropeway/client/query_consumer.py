"""A consumer that reads nothing: it tells brokers of the queries that read for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ropeway.client import running_info, running_queries
from ropeway.client.base import Client
from ropeway.client.config import ClientConfig
from ropeway.client.instance import Instance
from ropeway.client.running_info import Rates
from ropeway.client.subscription import parse
from ropeway.gateway.wire import bodies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ropeway.client.message import MessageQueue
    from ropeway.client.running_queries import Query
    from ropeway.client.subscription import Subscription

_MS = 1000


class QueryConsumer(Client):
    """A member of a group whose queues others read. Use it with `async with`.

    Args:
        name_server: `host:port`, several joined by semicolons.
        group: The one that the queries store their offsets for.
        config: Times and limits.
    """

    def __init__(
        self, name_server: str, group: str, *, config: ClientConfig | None = None
    ) -> None:
        super().__init__(Instance(name_server, config or ClientConfig()))
        self._group = group
        self._subscriptions: dict[str, Subscription] = {}
        self._offsets: dict[MessageQueue, int] = {}
        self._queries: Sequence[Query] = ()
        self._rates = Rates()
        self._instance.describe = self._describe
        self._instance.on_running_info(self._running_info)

    async def tell(
        self, queries: Sequence[Query], offsets: Mapping[MessageQueue, int]
    ) -> None:
        """Say how far queries are, to whoever asks from now on.

        Args:
            queries: All that run.
            offsets: Where the last batch of each ends.

        Raises:
            RemotingError: No name server tells where a topic is.
        """
        self._queries = queries
        took_s = sum(one.batches[-1].took_ms for one in queries if one.batches) / _MS
        for queue, offset in offsets.items():
            done = offset - self._offsets.get(queue, offset)
            if done > 0:
                self._rates.pulled(queue.topic, done)
                self._rates.handled(queue.topic, done, took_s, failed=False)
        self._offsets |= offsets
        new = {queue.topic for queue in offsets} - self._subscriptions.keys()
        for topic in sorted(new):
            await self._instance.routes.get(topic)
            now_ms = time.time_ns() // 1_000_000
            self._subscriptions[topic] = parse(topic, bodies.SUB_ALL, now_ms)
        if new:
            await self._instance.heartbeat()

    def _describe(self) -> bodies.HeartbeatData:
        return bodies.HeartbeatData(
            client_id=self.client_id,
            producer_data_set=[],
            consumer_data_set=[self._consumer()],
        )

    def _consumer(self) -> bodies.ConsumerData:
        return bodies.ConsumerData(
            group_name=self._group,
            consume_type=bodies.CONSUME_ACTIVELY,
            subscription_data_set=[one.data() for one in self._subscriptions.values()],
        )

    def _running_info(self, stack: bool) -> bytes:
        return running_info.encode(
            self._consumer(),
            {
                queue: {"commitOffset": offset, "cachedMsgCount": 0}
                for queue, offset in self._offsets.items()
            },
            self._rates,
            stack=stack,
            properties={
                running_queries.PROPERTY: running_queries.encode([*self._queries])
            },
        )
