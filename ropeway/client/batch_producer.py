"""Batches over many queues: staged here and there, committed together, once.

A batch is committed when the *first* broker has it: the one that has this producer's
last batch, or the first by name. It tells which staged messages it took, and the other
brokers are told the same. So whoever commits a batch again, after whatever crash, with
whatever staged messages, ends with what was committed first.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from ropeway.client import send_request
from ropeway.client.base import Client
from ropeway.client.config import ProducerConfig
from ropeway.client.errors import ConnectionFailedError
from ropeway.client.ids import UniqueKeys
from ropeway.client.instance import Instance
from ropeway.client.routes import MASTER_ID
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.commands.batches import (
    NO_BATCH,
    CommitBatch,
    LastBatch,
    LastBatchReply,
    Stage,
    StagedBatch,
    StageReply,
)
from ropeway.gateway.wire.commands.namesrv import GetBrokerClusterInfo
from ropeway.gateway.wire.properties import dump

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ropeway.client.message import Message, MessageQueue

_COMMIT_TIMEOUT_S = 60.0
"""A large batch is copied to its queues before a broker answers."""

Staged = tuple[str, int]
"""A broker, and what it named staged messages by."""


class BatchProducer(Client):
    """Sends messages in batches that are delivered as a whole, once. Ropeway only.

    Many producers of one id, also on other machines, may stage; one commits.

    Args:
        name_server: `host:port`, several joined by semicolons.
        producer_id: Tells whose batches these are; keep it over restarts.
        config: Times and limits.
    """

    def __init__(
        self,
        name_server: str,
        producer_id: str,
        *,
        config: ProducerConfig | None = None,
    ) -> None:
        self._config = config or ProducerConfig()
        self._producer_id = producer_id
        super().__init__(Instance(name_server, self._config))
        self._keys = UniqueKeys()

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues of a topic that can be written to now, sorted.

        Raises:
            TopicNotFoundError: There is no such topic.
            ConnectionFailedError: None of its brokers has a master now.
            RemotingError: No name server answers.
        """
        self._instance.ensure_started()
        return (await self._instance.routes.fetch(topic)).writable(topic)

    async def stage(self, queue: MessageQueue, messages: Sequence[Message]) -> Staged:
        """Hand messages of one queue to its broker, for a commit to come.

        Raises:
            ValueError: No broker would take them: see `Producer.send_batch`.
            RemotingError: They are not staged, as far as anybody knows; staging them
                again is fine.
        """
        send_request.check_batch(messages, self._config.max_message_bytes)
        entries = [
            BatchEntry(
                one.flag,
                one.body,
                dump(send_request.wire_properties(one, self._keys.make())),
            )
            for one in messages
        ]
        return await self.stage_encoded(queue, encode_batch(entries))

    async def stage_encoded(self, queue: MessageQueue, data: bytes) -> Staged:
        """The same for messages as `encode_batch` makes them."""
        self._instance.ensure_started()
        routes = self._instance.routes
        await routes.get(queue.topic)
        header = Stage(
            producer_id=self._producer_id,
            topic=queue.topic,
            queue_id=queue.queue_id,
            bname=queue.broker_name,
        )
        try:
            response = await self._instance.connections.request(
                routes.master(queue.broker_name),
                header,
                data,
                timeout_s=_COMMIT_TIMEOUT_S,
            )
        except ConnectionFailedError:
            # The broker may have another master when it is tried again.
            await routes.refresh()
            raise
        return queue.broker_name, response.header(StageReply).offset

    async def commit(self, batch_id: int, staged: Iterable[Staged]) -> bool:
        """Deliver what was staged, unless a batch of this number was committed before.

        Args:
            batch_id: 0 or more, and higher than that of each batch before.
            staged: What `stage` returned; in this order within each queue.

        Returns:
            Whether it was this commit that did it, as far as that can be told: False
            where other staged messages were committed under this number.

        Raises:
            ResponseError: A broker refused.
            RemotingError: It may be committed or not; commit again to make it so.
        """
        asked: defaultdict[str, list[int]] = defaultdict(list)
        for broker, offset in staged:
            asked[broker].append(offset)
        brokers = await self._brokers()
        first = await self._first(brokers)
        decided = await self._commit(brokers[first], first, batch_id, dict(asked))
        others = [name for name in decided if name != first]
        for name in others:
            if name not in brokers:
                raise ConnectionFailedError(name, f"of batch {batch_id} is not there")
        await asyncio.gather(
            *(self._commit(brokers[name], name, batch_id, decided) for name in others)
        )
        return decided == asked

    async def last(self) -> int | None:
        """The number of the batch that was committed last; None where there is none.

        Raises:
            RemotingError: A broker does not tell.
        """
        brokers = await self._brokers()
        last = max([await self._last(at, name) for name, at in brokers.items()])
        return None if last == NO_BATCH else last

    async def _first(self, brokers: dict[str, str]) -> str:
        """The broker that has the last batch, or the first by name."""
        last = {name: await self._last(at, name) for name, at in brokers.items()}
        return min(brokers, key=lambda name: (-last[name], name))

    async def _last(self, address: str, broker: str) -> int:
        response = await self._instance.connections.request(
            address, LastBatch(producer_id=self._producer_id, bname=broker)
        )
        return response.header(LastBatchReply).batch_id

    async def _commit(
        self, address: str, broker: str, batch_id: int, staged: dict[str, list[int]]
    ) -> dict[str, list[int]]:
        header = CommitBatch(
            producer_id=self._producer_id, batch_id=batch_id, bname=broker
        )
        response = await self._instance.connections.request(
            address,
            header,
            bodies.encode(StagedBatch(staged=staged)),
            timeout_s=_COMMIT_TIMEOUT_S,
        )
        return response.json(StagedBatch).staged

    async def _brokers(self) -> dict[str, str]:
        self._instance.ensure_started()
        response = await self._instance.routes.ask(GetBrokerClusterInfo())
        table = response.json(bodies.ClusterInfo).broker_addr_table
        masters = {
            name: data.broker_addrs[str(MASTER_ID)]
            for name, data in table.items()
            if str(MASTER_ID) in data.broker_addrs
        }
        # Any of them may have the last batch, and decides then what is in it.
        if masterless := table.keys() - masters.keys():
            raise ConnectionFailedError(", ".join(sorted(masterless)), "has no master")
        if not masters:
            raise ConnectionFailedError("brokers", "none is there now")
        return masters
