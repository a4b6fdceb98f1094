"""The producer: sends messages, and tries again where that is safe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client import send_request
from ropeway.client.base import Client
from ropeway.client.config import ProducerConfig
from ropeway.client.errors import RemotingError, may_succeed_elsewhere
from ropeway.client.ids import UniqueKeys
from ropeway.client.instance import Instance
from ropeway.client.queue_selector import QueueChoice
from ropeway.gateway.wire import bodies, recall
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.batch import encode_batch
from ropeway.gateway.wire.commands.send import RecallMessage, RecallReply
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.message import Message, MessageQueue, SendResult
    from ropeway.client.queue_selector import Selector
    from ropeway.gateway.wire.batch import BatchEntry
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.gateway.wire.header import Header

    MakeRequest = Callable[[MessageQueue], tuple[Header, Buffer]]


class Producer(Client):
    """Sends messages to any topic. Use it with `async with`, or `start` and `close`.

    Sends may run at the same time; those to one queue that wait for each other
    keep their order.

    Args:
        name_server: `host:port`, several joined by semicolons.
        group: The producer group; a name that brokers show.
        config: Times and limits.
    """

    def __init__(
        self, name_server: str, group: str, *, config: ProducerConfig | None = None
    ) -> None:
        self._config = config or ProducerConfig()
        self._group = group
        super().__init__(Instance(name_server, self._config))
        self._instance.describe = self._describe
        self._keys = UniqueKeys()
        self._choice = QueueChoice()

    async def send(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send a message and return when the broker has stored it.

        Without a queue, a selector or a sharding key it goes to each queue in turn,
        and after a failure that another may not have, to another queue, preferably
        of another broker. It may then be stored twice. With one of them it is tried
        once, because another try could change the order.

        Args:
            message: What to send.
            queue: Where to.
            selector: Chooses among all writable queues, sorted.
            timeout_s: The longest that all tries may take together; by default
                `send_timeout_s` of the configuration.

        Raises:
            ValueError: The message is one that no broker would take.
            TopicNotFoundError: There is no such topic, and none is created.
            ResponseError: A broker refused it.
            ConnectionFailedError: It may or may not have been stored.
            ClientClosedError: The producer does not run.
        """
        make, keys = self._single(message)
        sent = await self._deliver(message, make, keys, queue, selector, timeout_s)
        return sent[0]

    async def send_batch(
        self,
        messages: Sequence[Message],
        queue: MessageQueue | None = None,
        timeout_s: float | None = None,
    ) -> list[SendResult]:
        """Send messages of one topic to one queue in one request.

        The broker stores all or none, one behind the other. Tries are made as for
        a single message.

        Args:
            messages: At least one; without delay; not longer together than a message
                may be.
            queue: Where to; any by default.
            timeout_s: The longest that all tries may take together; by default
                `send_timeout_s` of the configuration.

        Raises:
            ValueError: The messages cannot go together.
            RemotingError: As for `send`.
        """
        send_request.check_batch(messages, self._config.max_message_bytes)
        keys = [self._keys.make() for _ in messages]
        own = [
            send_request.wire_properties(message, key)
            for message, key in zip(messages, keys, strict=True)
        ]

        def make(queue: MessageQueue) -> tuple[Header, Buffer]:
            return send_request.batch_request(
                self._group,
                queue,
                messages,
                own,
                default_queues=self._config.default_queues,
            )

        return await self._deliver(messages[0], make, keys, queue, None, timeout_s)

    async def send_entries(
        self, queue: MessageQueue, entries: list[BatchEntry], timeout_s: float = 10.0
    ) -> None:
        """Send messages in wire form to one queue, until the broker has them.

        For who makes many: nothing is checked here, and the properties have the unique
        keys. What was sent before a failure may be stored twice.

        Args:
            queue: Where to.
            entries: The messages; they go in one request.
            timeout_s: The longest that one try may take.

        Raises:
            RemotingError: All tries failed; nothing or all of it is stored.
        """
        await self.send_encoded(queue, encode_batch(entries), len(entries), timeout_s)

    async def send_encoded(
        self, queue: MessageQueue, data: bytes, count: int, timeout_s: float = 10.0
    ) -> None:
        """The same for what `encode_batch` has made.

        Args:
            queue: Where to.
            data: The messages.
            count: How many they are.
            timeout_s: The longest that one try may take.
        """

        def make(queue: MessageQueue) -> tuple[Header, Buffer]:
            queues = self._config.default_queues
            header = send_request.encoded_request(
                self._group, queue, default_queues=queues
            )
            return header, data

        await self._insist(queue, make, count, timeout_s)

    async def send_entry(
        self, queue: MessageQueue, entry: BatchEntry, timeout_s: float = 10.0
    ) -> None:
        """The same for one message that cannot be in a batch, as it asks for a delay.

        Args:
            queue: Where to.
            entry: The message.
            timeout_s: The longest that one try may take.
        """

        def make(queue: MessageQueue) -> tuple[Header, Buffer]:
            queues = self._config.default_queues
            header = send_request.entry_request(
                self._group, queue, entry, default_queues=queues
            )
            return header, entry.body

        await self._insist(queue, make, 1, timeout_s)

    async def _insist(
        self, queue: MessageQueue, make: MakeRequest, count: int, timeout_s: float
    ) -> None:
        self._instance.ensure_started()
        for attempt in range(self._config.retries + 1):
            try:
                await self._attempt(queue, make, [""] * count, timeout_s)
            except RemotingError as error:
                is_last = attempt == self._config.retries
                if is_last or not may_succeed_elsewhere(error):
                    raise
                # The broker may have another master now.
                await self._instance.routes.refresh()
            else:
                return

    async def send_one_way(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
    ) -> None:
        """Send a message without an answer: nobody will know whether it was stored.

        Raises:
            ValueError: The message is one that no broker would take.
            RemotingError: There is no route or no connection.
        """
        self._instance.ensure_started()
        make, _ = self._single(message)
        target = queue or self._choice.choose(
            await self._queues(message.topic), message, selector
        )
        header, body = make(target)
        address = await self._address(target)
        await self._instance.connections.send_one_way(address, header, body)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Take a message back that waits for its time.

        It is not delivered, unless its time comes before the broker has this. Brokers
        do not tell whether the message was still there.

        Args:
            topic: The message's.
            recall_handle: What sending it returned.

        Returns:
            The message's id.

        Raises:
            ValueError: It is no handle.
            ResponseError: The broker refused: its time has come, or it is not of this
                topic.
            RemotingError: There is no route or no connection.
        """
        self._instance.ensure_started()
        try:
            handle = recall.parse(recall_handle)
        except MessageError as error:
            raise ValueError(str(error)) from error
        await self._instance.routes.get_or_borrow(topic, self._config.default_queues)
        response = await self._instance.connections.request(
            self._instance.routes.master(handle.broker),
            RecallMessage(
                topic=topic,
                recall_handle=recall_handle,
                producer_group=self._group,
                bname=handle.broker,
            ),
        )
        return response.header(RecallReply).msg_id

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be written to, sorted.

        Raises:
            TopicNotFoundError: There is no such topic, and none is created.
            ConnectionFailedError: None of its brokers has a master now.
            RemotingError: No name server answers.
        """
        self._instance.ensure_started()
        return list(await self._queues(topic))

    async def _queues(self, topic: str) -> Sequence[MessageQueue]:
        route = await self._instance.routes.get_or_borrow(
            topic, self._config.default_queues
        )
        return route.writable(topic)

    def _single(self, message: Message) -> tuple[MakeRequest, list[str]]:
        config = self._config
        send_request.check(message, config.max_message_bytes)
        properties = send_request.wire_properties(message, self._keys.make())
        body, sys_flag = send_request.compressed(
            message.body, config.compress_above_bytes
        )

        def make(queue: MessageQueue) -> tuple[Header, Buffer]:
            header = send_request.single_request(
                self._group,
                queue,
                properties,
                sys_flag=sys_flag,
                flag=message.flag,
                default_queues=config.default_queues,
            )
            return header, body

        return make, [properties[names.UNIQ_KEY]]

    async def _deliver(
        self,
        message: Message,
        make: MakeRequest,
        keys: Sequence[str],
        queue: MessageQueue | None,
        selector: Selector | None,
        timeout_s: float | None,
    ) -> list[SendResult]:
        self._instance.ensure_started()
        if timeout_s is None:
            timeout_s = self._config.send_timeout_s
        is_ordered = bool(queue or selector or message.sharding_key is not None)
        attempts = 1 if is_ordered else 1 + self._config.retries
        deadline = asyncio.get_running_loop().time() + timeout_s
        avoid: MessageQueue | None = None
        while True:
            queues = (queue,) if queue else await self._queues(message.topic)
            target = queue or self._choice.choose(queues, message, selector, avoid)
            left_s = deadline - asyncio.get_running_loop().time()
            try:
                return await self._attempt(target, make, keys, left_s)
            except RemotingError as error:
                attempts -= 1
                out_of_time = asyncio.get_running_loop().time() >= deadline
                if not attempts or out_of_time or not may_succeed_elsewhere(error):
                    raise
                avoid = target

    async def _attempt(
        self,
        queue: MessageQueue,
        make: MakeRequest,
        keys: Sequence[str],
        timeout_s: float,
    ) -> list[SendResult]:
        header, body = make(queue)
        response = await self._instance.connections.request(
            await self._address(queue),
            header,
            body,
            timeout_s=timeout_s,
            expect=send_request.STATUS_OF_CODE,
        )
        return send_request.results(response, queue, keys)

    async def _address(self, queue: MessageQueue) -> str:
        await self._instance.routes.get_or_borrow(
            queue.topic, self._config.default_queues
        )
        return self._instance.routes.master(queue.broker_name)

    def _describe(self) -> bodies.HeartbeatData:
        return bodies.HeartbeatData(
            client_id=self._instance.client_id,
            producer_data_set=[bodies.ProducerData(group_name=self._group)],
            consumer_data_set=[],
        )
