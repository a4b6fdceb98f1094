"""Where a group goes on: kept at the brokers, or for broadcasting in a file.

Source: RemoteBrokerOffsetStore.java and LocalFileOffsetStore.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from ropeway.client.errors import RemotingError
from ropeway.client.message import MessageQueue
from ropeway.common.reasons import reason_of
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.offsets import (
    Offset,
    QueryConsumerOffset,
    UpdateConsumerOffset,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.client.instance import Instance

_log = logging.getLogger(__name__)


class OffsetFileError(Exception):
    """The file with a broadcasting consumer's offsets cannot be read."""


class OffsetStore(Protocol):
    """Offsets of one group, in memory until they are stored."""

    async def read(self, queue: MessageQueue) -> int | None:
        """The stored offset; None where the group never read this queue."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Note that everything before an offset is done."""

    def known(self, queue: MessageQueue) -> int | None:
        """The offset that was noted last."""

    async def store(self, queue: MessageQueue) -> None:
        """Store the offset of one queue.

        Raises:
            RemotingError: The broker did not take it.
        """

    async def store_all(self) -> None:
        """Store the offsets of all queues; what fails is logged and stays noted."""

    def forget(self, queue: MessageQueue) -> None:
        """Drop a queue that went to another consumer."""


class BrokerOffsets:
    """A group's offsets at the brokers of its queues."""

    def __init__(self, instance: Instance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._offsets: dict[MessageQueue, int] = {}
        self._storing: dict[MessageQueue, asyncio.Task[RemotingError | None]] = {}

    async def read(self, queue: MessageQueue) -> int | None:
        """The stored offset; None where the group never read this queue.

        Raises:
            RemotingError: The broker did not say.
        """
        _, address = self._instance.routes.reader(queue.broker_name)
        response = await self._instance.connections.request(
            address,
            QueryConsumerOffset(
                consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id
            ),
            expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        if response.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return response.header(Offset).offset

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Note that everything before an offset is done."""
        self._offsets[queue] = offset

    def known(self, queue: MessageQueue) -> int | None:
        """The offset that was noted last."""
        return self._offsets.get(queue)

    async def store(self, queue: MessageQueue) -> None:
        """Store the offset of one queue.

        Raises:
            RemotingError: The broker did not take it.
        """
        # A broker may work on two requests in either order, and keep the older offset.
        # So what was sent is waited for, also by the next one where this is cancelled.
        while (sent := self._storing.get(queue)) is not None:
            await asyncio.wait({sent})
        if (offset := self._offsets.get(queue)) is None:
            return
        sent = self._instance.tasks.spawn(self._sent(queue, offset), f"store {queue}")
        self._storing[queue] = sent
        sent.add_done_callback(lambda _: self._storing.pop(queue))
        if error := await asyncio.shield(sent):
            raise error

    async def _sent(self, queue: MessageQueue, offset: int) -> RemotingError | None:
        """Send an offset: why the broker did not take it, if so."""
        header = UpdateConsumerOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        try:
            _, address = self._instance.routes.reader(queue.broker_name)
            await self._instance.connections.request(address, header)
        except RemotingError as error:
            return error
        return None

    async def store_all(self) -> None:
        """Store every noted offset, changed or not.

        A broker that was killed may have lost what it had not written yet; telling
        it again heals that.
        """
        queues = tuple(self._offsets)
        results = await asyncio.gather(
            *(self.store(queue) for queue in queues), return_exceptions=True
        )
        for queue, error in zip(queues, results, strict=True):
            if isinstance(error, RemotingError):
                _log.warning("offset not stored queue=%s error=%s", queue, error)
            elif isinstance(error, BaseException):
                raise error

    def forget(self, queue: MessageQueue) -> None:
        """Drop a queue that went to another consumer."""
        self._offsets.pop(queue, None)


class _Entry(msgspec.Struct, frozen=True):
    queue: MessageQueue
    offset: int


class _File(msgspec.Struct, frozen=True):
    version: int
    offsets: list[_Entry]


_VERSION = 1


class FileOffsets:
    """A broadcasting consumer's offsets, in a JSON file of its own.

    The file is replaced as a whole, so that a crash leaves the old or the new one.

    Args:
        path: The file; made with its folders when something is stored.

    Raises:
        OffsetFileError: There is a file, and it is not such a one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets = _load(path)
        self._stored = dict(self._offsets)

    async def read(self, queue: MessageQueue) -> int | None:
        """The stored offset; None where this consumer never read this queue."""
        return self._offsets.get(queue)

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Note that everything before an offset is done."""
        self._offsets[queue] = offset

    def known(self, queue: MessageQueue) -> int | None:
        """The offset that was noted last."""
        return self._offsets.get(queue)

    async def store(self, queue: MessageQueue) -> None:  # noqa: ARG002 - one file
        """Store all offsets, as they are in one file."""
        await self.store_all()

    async def store_all(self) -> None:
        """Write the file, if anything changed."""
        offsets = dict(self._offsets)
        if offsets != self._stored:
            await asyncio.to_thread(_save, self._path, offsets)
            self._stored = offsets

    def forget(self, queue: MessageQueue) -> None:
        """Keep the offset: nobody else has it."""


def _load(path: Path) -> dict[MessageQueue, int]:
    try:
        data = msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OffsetFileError(f"{path} has no offsets: {reason_of(error)}") from error
    if data.version != _VERSION:
        raise OffsetFileError(
            f"{path} is of version {data.version}; allowed: {_VERSION}"
        )
    return {entry.queue: entry.offset for entry in data.offsets}


def _save(path: Path, offsets: dict[MessageQueue, int]) -> None:
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    entries = [_Entry(queue, offset) for queue, offset in sorted(offsets.items())]
    temporary = path.with_suffix(".tmp")
    # For this user alone, whatever the umask is.
    with open(temporary, "wb", opener=partial(os.open, mode=0o600)) as file:
        file.write(msgspec.json.encode(_File(_VERSION, entries)))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
