"""The client without asyncio: the same objects, run by a loop in a thread of theirs.

Each object here owns one of the asynchronous client and calls it; what methods
promise and raise is said there.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from ropeway.client.consumer import PushConsumer
from ropeway.client.errors import ClientClosedError
from ropeway.client.producer import Producer
from ropeway.client.pull_consumer import PullConsumer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
    from concurrent.futures import Future

    from ropeway.client.message import (
        Message,
        MessageQueue,
        ReceivedMessage,
        SendResult,
    )
    from ropeway.client.queue_selector import Selector

T = TypeVar("T")
C = TypeVar("C", Producer, PushConsumer, PullConsumer)


class LoopThread:
    """An event loop in a thread; lives from construction to `stop`."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop and wait for what it gives or raises."""
        future = self.begin(work)
        try:
            return future.result()
        except BaseException:
            # KeyboardInterrupt must not leave the work running unseen.
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run something on the loop, and go on; the future tells what it gives."""
        if self._loop.is_closed():
            work.close()
            raise ClientClosedError("the client is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """End the thread and close the loop."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class _SyncClient(Generic[C]):
    """What the three have in common: they start, close, and can be used by `with`."""

    def __init__(self, make: Callable[[], C], name: str) -> None:
        self._thread = LoopThread(name)

        async def made() -> C:
            return make()

        try:
            self._client: C = self._thread.call(made())
        except BaseException:
            self._thread.stop()
            raise

    @property
    def client_id(self) -> str:
        """The name that brokers know this client by."""
        return self._client.client_id

    def start(self) -> None:
        """Start the client."""
        self._thread.call(self._client.start())

    def close(self) -> None:
        """Close the client and end its thread; may be called again."""
        try:
            self._thread.call(self._client.close())
        except ClientClosedError:
            return
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncProducer(_SyncClient[Producer]):
    """`Producer` without asyncio; threads may share it."""

    def __init__(self, name_server: str, group: str, **options: Any) -> None:
        super().__init__(lambda: Producer(name_server, group, **options), group)

    def send(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Send a message: `Producer.send`."""
        return self._thread.call(self._client.send(message, queue, selector, timeout_s))

    def send_batch(
        self,
        messages: Sequence[Message],
        queue: MessageQueue | None = None,
        timeout_s: float | None = None,
    ) -> list[SendResult]:
        """Send messages together: `Producer.send_batch`."""
        return self._thread.call(self._client.send_batch(messages, queue, timeout_s))

    def send_one_way(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
    ) -> None:
        """Send a message without an answer: `Producer.send_one_way`."""
        self._thread.call(self._client.send_one_way(message, queue, selector))

    def recall(self, topic: str, recall_handle: str) -> str:
        """Take a message back that waits: `Producer.recall`."""
        return self._thread.call(self._client.recall(topic, recall_handle))

    def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that can be written to: `Producer.queues`."""
        return self._thread.call(self._client.queues(topic))


class SyncPushConsumer(_SyncClient[PushConsumer]):
    """`PushConsumer` without asyncio; handlers run in threads of their own."""

    def __init__(self, name_server: str, group: str, **options: Any) -> None:
        super().__init__(lambda: PushConsumer(name_server, group, **options), group)

    def subscribe(
        self,
        topic: str,
        expression: str,
        handler: Callable[[Any], Any],
        *,
        batch_size: int | None = None,
    ) -> None:
        """Read a topic: `PushConsumer.subscribe`; before `start`."""
        self._client.subscribe(topic, expression, handler, batch_size=batch_size)

    @property
    def queues(self) -> Collection[MessageQueue]:
        """The queues that this consumer reads now."""
        return self._client.queues


class SyncPullConsumer(_SyncClient[PullConsumer]):
    """`PullConsumer` without asyncio; for one thread at a time."""

    def __init__(self, name_server: str, group: str, **options: Any) -> None:
        super().__init__(lambda: PullConsumer(name_server, group, **options), group)

    def subscribe(self, topic: str, expression: str = "*") -> None:
        """Share a topic's queues with the group: `PullConsumer.subscribe`."""

        async def subscribe() -> None:
            self._client.subscribe(topic, expression)

        self._thread.call(subscribe())

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Read these queues and no others: `PullConsumer.assign`."""
        self._thread.call(self._client.assign(queues))

    @property
    def assignment(self) -> Collection[MessageQueue]:
        """The queues that this consumer reads now."""
        return self._client.assignment

    def poll(
        self, timeout_s: float = 1.0, max_messages: int = 32
    ) -> list[ReceivedMessage]:
        """Get the next messages: `PullConsumer.poll`."""
        return self._thread.call(self._client.poll(timeout_s, max_messages))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on from another offset: `PullConsumer.seek`."""
        self._thread.call(self._client.seek(queue, offset))

    def position(self, queue: MessageQueue) -> int:
        """The offset that `poll` goes on from."""
        return self._client.position(queue)

    def commit(self) -> None:
        """Store how far `poll` has come: `PullConsumer.commit`."""
        self._thread.call(self._client.commit())

    def committed(self, queue: MessageQueue) -> int | None:
        """The group's stored offset: `PullConsumer.committed`."""
        return self._thread.call(self._client.committed(queue))

    def queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic: `PullConsumer.queues`."""
        return self._thread.call(self._client.queues(topic))

    def begin_offset(self, queue: MessageQueue) -> int:
        """The offset of the oldest message: `PullConsumer.begin_offset`."""
        return self._thread.call(self._client.begin_offset(queue))

    def end_offset(self, queue: MessageQueue) -> int:
        """The offset of the next message: `PullConsumer.end_offset`."""
        return self._thread.call(self._client.end_offset(queue))

    def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset at a time: `PullConsumer.offset_for_timestamp`."""
        return self._thread.call(self._client.offset_for_timestamp(queue, timestamp_ms))
