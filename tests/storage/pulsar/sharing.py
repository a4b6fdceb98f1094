"""Logs whose topics native clients share, for tests: records that any bytes may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.storage.api import Record
from ropeway.storage.native import NativeMessage
from ropeway.storage.pulsar import open_log

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ropeway.storage.api import Done, EntryFormat, RecordParts
    from ropeway.storage.native import NativePosition
    from ropeway.storage.pulsar import PulsarLog, PulsarLogSettings
    from ropeway.storage.pulsar.partition import PulsarPartition


class Verbatim:
    """A record is a native message's payload, with the tag and keys it came with."""

    def __init__(self) -> None:
        self.known: dict[bytes, RecordParts] = {}

    def record(self, message: NativeMessage, place: NativePosition) -> RecordParts:
        body = bytes(message.body)
        assert place.offset >= 0
        assert len(place.unique) == 32
        return self.known.get(body) or Record(body, 0, ())

    def native(self, records: Sequence[bytes]) -> list[NativeMessage]:
        return [NativeMessage(one, {}) for one in records]


class SharedPartition:
    """A partition whose converter hears of what is appended."""

    def __init__(self, partition: PulsarPartition, converter: Verbatim) -> None:
        self._partition = partition
        self._converter = converter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._partition, name)

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        self._converter.known |= {one[0]: one for one in records}
        self._partition.append(records, store_ms, done)


class SharedLog:
    """A log that makes every topic one that native clients may share."""

    def __init__(self, log: PulsarLog, converter: Verbatim) -> None:
        self._log = log
        self._converter = converter
        self._partitions: dict[PulsarPartition, SharedPartition] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def create(
        self,
        topic: str,
        partitions: Collection[int],
        entry_format: EntryFormat = "pulsar",
        generation: int = 0,
        begins: Mapping[int, int] | None = None,
    ) -> None:
        await self._log.create(topic, partitions, entry_format, generation, begins)

    def partition(self, topic: str, number: int) -> SharedPartition:
        partition = self._log.partition(topic, number)
        shared = SharedPartition(partition, self._converter)
        return self._partitions.setdefault(partition, shared)


async def open_shared_log(
    settings: PulsarLogSettings, converter: Verbatim
) -> SharedLog:
    """A log of shared topics; it is told of those that there are, as a node does."""
    shared = SharedLog(
        await open_log(settings, prepare=True, converter=converter), converter
    )
    for topic, numbers in shared.topics().items():
        await shared.create(topic, numbers)
    return shared


class Noting:
    """Makes records of offset and body, and keeps what it was asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[NativeMessage, NativePosition]] = []

    def record(self, message: NativeMessage, place: NativePosition) -> RecordParts:
        self.seen.append((message, place))
        return Record(b"%d %s" % (place.offset, bytes(message.body)), 0, ())

    def native(self, records: Sequence[bytes]) -> list[NativeMessage]:
        return [NativeMessage(one, {}) for one in records]
