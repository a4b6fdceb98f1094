"""Writes down which transactions have ended, many in one record."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names
from ropeway.gateway.node.transactions import end_records
from ropeway.gateway.node.transactions.end_records import End, Ended
from ropeway.storage.api import LogError, LogUnavailableError

if TYPE_CHECKING:
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.transactions.open_transactions import OpenTransactions

log = structlog.get_logger(__name__)

_GATHER_S = 0.01
"""A kill within this time has a producer asked about what has ended already."""
_RETRY_S = 1.0


class EndsWriter:
    """Gathers ended transactions for a moment, and appends a record for each kind.

    What the log refuses is tried again: until it is written, it counts as ended here,
    and after a kill its producer is asked once more.
    """

    def __init__(self, broker: BrokerContext, book: OpenTransactions) -> None:
        self._book = book
        self._topics = broker.topics
        self._log = broker.log
        self._host = broker.host
        self._now_ms = broker.clock
        self._waiting: dict[End, list[int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._retrying: asyncio.Task[None] | None = None
        self._in_flight = 0
        self._closed = False
        self._landed = asyncio.Event()

    def add(self, origin: int, how: End) -> None:
        """A transaction has ended."""
        self._book.end(origin, how)
        self._waiting.setdefault(how, []).append(origin)
        if self._timer is None and self._retrying is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_S, self._flush)

    async def close(self) -> None:
        """Write what waits, once, and wait for that."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.gather(self._retrying, return_exceptions=True)
        self._flush()
        while self._in_flight:
            self._landed.clear()
            await self._landed.wait()

    def _flush(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        half_topic = self._topics.get(names.HALF_TOPIC)
        topic = self._topics.get(names.HALF_ENDS_TOPIC)
        if half_topic is None or topic is None:
            self._put_back(waiting, LogUnavailableError("its topic is not served"))
            return
        try:
            half_end = half_topic.partitions[0].next_offset
            partition = topic.partitions[0]
            written = [
                Ended(how, tuple(origins), half_end) for how, origins in waiting.items()
            ]
            store_ms = self._now_ms()
            offset = partition.next_offset
            records = [
                end_records.record(one, topic, at, store_ms, self._host())
                for at, one in enumerate(written, offset)
            ]
            partition.append(records, store_ms, partial(self._done, written))
        except LogError as error:
            self._put_back(waiting, error)
        else:
            self._in_flight += 1

    def _done(self, written: list[Ended], _offset: int, error: LogError | None) -> None:
        self._in_flight -= 1
        self._landed.set()
        if error is not None:
            self._put_back({one.how: list(one.origins) for one in written}, error)
            return
        for one in written:
            for origin in one.origins:
                self._book.finish(origin, one.how)

    def _put_back(self, waiting: dict[End, list[int]], error: LogError) -> None:
        for how, origins in waiting.items():
            self._waiting.setdefault(how, []).extend(origins)
        log.warning("ends of transactions are not written down", reason=str(error))
        if self._retrying is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._retrying = loop.create_task(self._retry())

    async def _retry(self) -> None:
        await asyncio.sleep(_RETRY_S)
        for topic in (names.HALF_TOPIC, names.HALF_ENDS_TOPIC):
            with suppress(LogError):
                await self._log.ready(topic)
        self._retrying = None
        self._flush()
