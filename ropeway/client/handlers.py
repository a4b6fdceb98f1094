"""Users' handlers: called with one message or a list, on the loop or in a thread."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from ropeway.client.message import RETRY, ConsumeResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.client.message import ReceivedMessage

_log = logging.getLogger(__name__)


class Registration(Struct, frozen=True):
    """A topic's handler."""

    function: Callable[[Any], Any]
    """Takes a message, or a list of them where `batch_size` is set."""
    batch_size: int | None


class Handling(NamedTuple):
    """How a consumer handles what it reads."""

    handlers: Handlers
    concurrency: int
    """How many batches are handled at the same time."""
    max_reconsume_times: int | None
    """After so many tries a message is a dead letter; None: as the broker says."""


class Handlers:
    """The handlers of one consumer.

    Args:
        concurrency: How many synchronous handlers may run at the same time.
        timeout_s: After it a handler counts as failed.
    """

    def __init__(self, concurrency: int, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._topics: dict[str, Registration] = {}
        self._threads = ThreadPoolExecutor(concurrency, "ropeway-handler")

    def add(
        self, topic: str, function: Callable[[Any], Any], batch_size: int | None
    ) -> None:
        """Register the handler of a topic.

        Raises:
            ValueError: The batch size is below 1.
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size {batch_size}; allowed: 1 or more, or None")
        self._topics[topic] = Registration(function, batch_size)

    def batches(
        self, messages: Sequence[ReceivedMessage]
    ) -> Iterator[list[ReceivedMessage]]:
        """Cut messages into runs that one handler call takes."""
        batch: list[ReceivedMessage] = []
        for message in messages:
            if batch and (
                batch[0].topic != message.topic
                or len(batch) >= self.batch_size(message.topic)
            ):
                yield batch
                batch = []
            batch.append(message)
        if batch:
            yield batch

    def batch_size(self, topic: str) -> int:
        """How many messages a topic's handler takes at most."""
        registration = self._topics.get(topic)
        return (registration and registration.batch_size) or 1

    async def run(self, batch: Sequence[ReceivedMessage]) -> ConsumeResult:
        """Call the handler of a batch; whatever it raises means RETRY."""
        topic = batch[0].topic
        registration = self._topics.get(topic)
        if registration is None:
            # A message of a topic that was subscribed to before comes again. To
            # finish it would lose it.
            _log.warning("no handler topic=%s msg_id=%s", topic, batch[0].msg_id)
            return RETRY
        argument = batch[0] if registration.batch_size is None else list(batch)
        try:
            async with asyncio.timeout(self._timeout_s):
                result = await self._call(registration.function, argument)
        except Exception:  # noqa: BLE001 - a user's code may raise anything
            _log.warning(
                "handler failed topic=%s msg_id=%s reconsume_times=%d",
                topic,
                batch[0].msg_id,
                batch[0].reconsume_times,
                exc_info=True,
            )
            return RETRY
        return RETRY if result is RETRY else ConsumeResult.SUCCESS

    async def _call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(argument)
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._threads, function, argument)
        return await result if inspect.isawaitable(result) else result

    def close(self) -> None:
        """Start no more synchronous handlers; a thread that runs cannot be stopped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
