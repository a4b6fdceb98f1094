"""Appends to a shared partition that have been sent and have not come back yet."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ropeway.storage.api import OutcomeUnknownError

if TYPE_CHECKING:
    from ropeway.storage.api import Done, LogError
    from ropeway.storage.pulsar.append_path import AppendPath
    from ropeway.storage.pulsar.appender import Traffic

_log = structlog.get_logger()


class _Sent(NamedTuple):
    sequence_id: int
    records: int
    bytes: int
    sent_at: float
    done: Done | None
    """None: it was answered as of unknown outcome."""


class PendingAppends:
    """What is on its way of one partition, in order, and who waits for it.

    Args:
        append_path: Whose; `traffic` knows it while there is anything.
        name: Topic and partition, for messages to people.
        traffic: Shared by all appenders of the log.
    """

    __slots__ = ("_append_path", "_drains", "_name", "_sent", "_traffic", "records")

    def __init__(self, append_path: AppendPath, name: str, traffic: Traffic) -> None:
        self._append_path = append_path
        self._name = name
        self._traffic = traffic
        self._sent: deque[_Sent] = deque()
        self._drains: list[tuple[int, asyncio.Future[None]]] = []
        """Whom to wake when an append and all before it have come."""
        self.records = 0
        """How many records are on their way."""

    def __bool__(self) -> bool:
        return bool(self._sent)

    @property
    def oldest_at(self) -> float:
        """When the oldest one was sent; there must be one."""
        return self._sent[0].sent_at

    def add(self, sequence_id: int, records: int, size: int, done: Done) -> None:
        """An append was sent, behind all others."""
        traffic = self._traffic
        now = time.monotonic()
        if not self._sent:
            if not traffic.appenders:
                traffic.heard_at = now
            traffic.appenders[self._append_path] = None
        self._sent.append(_Sent(sequence_id, records, size, now, done))
        self.records += records
        traffic.waiting_bytes += size

    async def drained(self) -> None:
        """Return when all that was added before has come.

        Raises:
            OutcomeUnknownError: It may never.
        """
        if self._sent:
            drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drains.append((self._sent[-1].sequence_id, drained))
            await drained

    def came(self, sequence_id: int, offset: int) -> None:
        """An append is there; so were those before it, if they were deleted since."""
        traffic = self._traffic
        traffic.heard_at = time.monotonic()
        sent = self._sent
        while sent and sent[0].sequence_id <= sequence_id:
            one = sent.popleft()
            self.records -= one.records
            if one.done is None:
                continue
            traffic.waiting_bytes -= one.bytes
            if one.sequence_id == sequence_id:
                _answer(one.done, offset, None)
            else:
                _answer(one.done, -1, self._unknown("it was deleted at once"))
        if not sent:
            traffic.appenders.pop(self._append_path, None)
        drains, self._drains = self._drains, []
        for last, drained in drains:
            if last > sequence_id:
                self._drains.append((last, drained))
            elif not drained.done():
                drained.set_result(None)

    def give_up(self, reason: str) -> None:
        """Answer all as of unknown outcome; it may come yet."""
        given_up, self._sent = self._sent, deque()
        self._sent.extend(one._replace(done=None) for one in given_up)
        for one in given_up:
            if one.done is not None:
                self._traffic.waiting_bytes -= one.bytes
                _answer(one.done, -1, self._unknown(reason))
        drains, self._drains = self._drains, []
        for _, drained in drains:
            if not drained.done():
                drained.set_exception(self._unknown(reason))

    def fail(self, reason: str) -> None:
        """Answer all as of unknown outcome, for it will never come."""
        self._traffic.appenders.pop(self._append_path, None)
        self.give_up(reason)
        self._sent.clear()
        self.records = 0

    def _unknown(self, reason: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(f"{self._name}: {reason}")


def _answer(done: Done, offset: int, error: LogError | None) -> None:
    try:
        done(offset, error)
    except Exception:  # noqa: BLE001 - one caller's fault must not reach others
        _log.exception("a callback of an append failed")
