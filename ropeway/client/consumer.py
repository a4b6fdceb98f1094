"""The push consumer: hands each message of its topics to a handler."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from ropeway.client.base import Client
from ropeway.client.concurrently import ConcurrentReader
from ropeway.client.config import ConsumerConfig
from ropeway.client.errors import ClientClosedError
from ropeway.client.handlers import Handlers, Handling
from ropeway.client.instance import Instance
from ropeway.client.message import ConsumeFrom
from ropeway.client.offsets import BrokerOffsets, FileOffsets
from ropeway.client.orderly import OrderlyReader
from ropeway.client.queue_reader import Setup
from ropeway.client.send_request import RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ropeway.client.message import MessageQueue
    from ropeway.client.offsets import OffsetStore

_log = logging.getLogger(__name__)

BROADCAST_INSTANCE = "DEFAULT"
"""A broadcasting consumer's default instance name. It must stay the same over
restarts, since its offsets are kept under it; so does Java's."""


class PushConsumer(Client):
    """Reads topics in a group and calls handlers.

    Every message is handled at least once: when it was handled and that could not be
    noted, it comes again. Use it with `async with`, or
    `start` and `close`; subscribe before.

    Args:
        name_server: `host:port`, several joined by semicolons.
        group: The consumer group. Its consumers share the queues of their topics,
            so all must subscribe to the same.
        orderly: Handle the messages of each queue one after the other. A failed one
            is tried again in its place. Otherwise messages are handled in no order,
            and failed ones come again later, by the broker's delay levels.
        broadcasting: Every consumer gets all messages, and failed ones do not come
            again. Offsets are kept in a file.
        consume_from: Where the group starts on a queue that it never read.
        config: Times and limits.

    Raises:
        OffsetFileError: The file of a broadcasting consumer's offsets is damaged.
    """

    def __init__(
        self,
        name_server: str,
        group: str,
        *,
        orderly: bool = False,
        broadcasting: bool = False,
        consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET,
        config: ConsumerConfig | None = None,
    ) -> None:
        config = config or ConsumerConfig()
        instance = config.instance or (BROADCAST_INSTANCE if broadcasting else None)
        self._config = config
        super().__init__(Instance(name_server, config, instance))
        self._handlers = Handlers(config.concurrency, config.handler_timeout_s)
        offsets: OffsetStore = BrokerOffsets(self._instance, group)
        if broadcasting:
            folder = config.offset_dir.expanduser() / self._instance.client_id
            offsets = FileOffsets(folder / f"{group}.json")
        setup = Setup(
            instance=self._instance,
            group=group,
            config=config,
            offsets=offsets,
            consume_from=consume_from,
            is_broadcasting=broadcasting,
        )
        kind = OrderlyReader if orderly else ConcurrentReader
        handling = Handling(
            self._handlers, config.concurrency, config.max_reconsume_times
        )
        self._reader = kind(setup, handling)
        if not broadcasting:
            self._reader.subscribe(f"{RETRY_PREFIX}{group}", "*")
        self._is_started = False
        self._is_closed = False

    @property
    def queues(self) -> Collection[MessageQueue]:
        """The queues that this consumer reads now; retry queues among them."""
        return tuple(sorted(self._reader.queues))

    def subscribe(
        self,
        topic: str,
        expression: str,
        handler: Callable[[Any], Any],
        *,
        batch_size: int | None = None,
    ) -> None:
        """Read a topic.

        Args:
            topic: Its name; it need not exist yet.
            expression: `*`, the wanted tags: `TagA || TagB`, or an `Sql` condition.
            handler: Called with a `ReceivedMessage`. An asynchronous function runs on
                the event loop, another one in a thread. When it raises or returns
                `RETRY`, the message comes again; else it is done.
            batch_size: Call with a list of up to so many messages instead; all of
                them come again when it fails.

        Raises:
            ClientClosedError: The consumer is already started.
            ValueError: The expression or the batch size is none.
        """
        if self._is_started:
            raise ClientClosedError("subscribe before the consumer starts")
        self._reader.subscribe(topic, expression)
        self._handlers.add(topic, handler, batch_size)

    async def start(self) -> None:
        """Join the group and begin to read.

        Raises:
            ClientClosedError: It was started before.
            RemotingError: No name server can be reached.
        """
        if self._is_started:
            raise ClientClosedError("a consumer starts once")
        self._is_started = True
        try:
            await self._reader.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop reading, wait for handlers, store offsets, leave the group.

        Handlers that take longer than `close_timeout_s` are cancelled; their
        messages come again. Not to be called by a handler.
        """
        if not self._is_started or self._is_closed:
            return
        self._is_closed = True
        reader = self._reader
        try:
            await reader.stop_reading()
            await reader.finish(self._config.close_timeout_s)
            async with asyncio.timeout(self._config.close_timeout_s):
                await reader.offsets.store_all()
                await reader.unlock_all()
        except TimeoutError:
            _log.warning("offsets not stored in time client=%s", self.client_id)
        finally:
            self._handlers.close()
            await self._instance.close()
