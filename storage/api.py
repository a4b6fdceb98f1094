"""The contract of every log: what the gateway may rely on, and nothing more.

A log keeps *partitions*: one ordered sequence of records each, named by a topic and
a number from 0 to 1023. A record is one RocketMQ stored message, as bytes; the log
neither reads nor changes it, so a pull is answered with slices of what was stored.

Laws, held by tests/contracts/log.py for every backend:

* Offsets are counted in records, start at 0 or where `create` was told, and have no
  gaps, but for those that compaction leaves (`storage.compaction_api`). They never
  restart, also not when retention deletes everything, unless the topic is deleted.
* Appends to one partition keep the order of the calls. All records of one append
  become visible together, or none.
* `end` moves only over records that are as durable as the log is set up to make
  them; so whatever a reader can see, a restart keeps.
* An append's `done` is called exactly once, never from inside `append` itself.
* All calls come from one event loop's thread. Nothing here blocks that loop on a
  disk or a network longer than one buffered write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

MAX_PARTITIONS = 1024
"""Partitions of one topic: what the 10 bits of a message id can tell apart."""

MAX_OFFSET = (1 << 52) - 1
"""The largest offset: what the 52 bits of a message id can hold."""

MAX_LOOKS = 4096
"""Records that one read with a filter looks at, so that it ends soon in any case."""

MAX_LOOKED_BYTES = 8 * 1024 * 1024
"""Bytes of records that one read shows to `Filter.accept`."""

Flush = Literal["async", "sync"]

EntryFormat = Literal["packed", "pulsar"]
"""How a log keeps records: packed, as is best for it; or as messages of Pulsar's own,
which its native clients write and read, too."""

Numbering = Literal["dense", "rotating"]
"""Dense: each topic's partitions are 0 to n-1. Rotating: numbers go round over all
topics, so that message ids tell the first 1,024 queues of a node apart."""


class LogError(Exception):
    """A log could not do what was asked. The subclasses say what happens next."""


class LogUnavailableError(LogError):
    """Nothing was stored and asking again later may work: disk full, not the owner."""


class NotReadyError(LogUnavailableError):
    """A partition is not open yet; it is when `Log.ready` has returned for it.

    Args:
        topic: The topic.
        number: Of the partition; None where all of them are waited for.
    """

    def __init__(self, topic: str, number: int | None = None) -> None:
        super().__init__(f"topic {topic} is not open yet; try again")
        self.topic = topic
        self.numbers = None if number is None else (number,)
        """What to ask `Log.ready` for."""


class LogBusyError(LogUnavailableError):
    """Nothing was stored: what was appended before waits for too long, or is much."""


class OutcomeUnknownError(LogError):
    """The records may or may not have been stored; only a reader can tell."""


class LogDamagedError(LogError):
    """Stored bytes are not what was written; names the file, the place, the way out."""


class LogUnfitError(LogError):
    """The log, or the server beneath it, lacks what this needs; names the setting."""


class LogForeignError(LogUnfitError):
    """What is there is another cluster's, or has lost what the routes say it has."""


class LogInUseError(LogError):
    """Another process has this log open."""


class LogLimitError(LogError):
    """A partition number, an offset or a record is beyond what the log can hold."""


class BeginsElsewhereError(LogError):
    """A partition is there, and begins at another offset than `create` was told."""


class NoSuchPartitionError(LogError):
    """The topic was never created here, was deleted, or has fewer partitions."""


RecordParts = tuple[bytes, int, Sequence[str]]
"""A `Record` from where it is made so often that naming its parts costs too much."""


class Record(NamedTuple):
    """One stored message on its way into the log, with what the indexes need of it."""

    data: bytes
    """The message as clients will read it, its offset and message id filled in."""
    tag_hash: int
    """Java's `String.hashCode` of the tag as a signed 32-bit number; 0 without one."""
    keys: Sequence[str]
    """Keys to find it by: the words of KEYS, and UNIQ_KEY."""


class Chunk(NamedTuple):
    """What a read found."""

    data: Sequence[bytes | memoryview]
    """Stored messages in order; one element may hold several, never part of one."""
    records: int
    """How many messages `data` holds."""
    next_offset: int
    """Where the next read goes on: after the last record that was looked at."""
    cold: bool = False
    """Whether it is a tier's, also where it was fetched already, by whoever read on."""


class Filter(Struct, frozen=True):
    """Which records a read wants; all, where a member is None."""

    tag_hashes: Collection[int] | None = None
    """Looked up in the index, so records of other tags are never read."""
    accept: Callable[[bytes | memoryview], bool] | None = None
    """Asked for each record that the tag hash let through, with its stored bytes."""
    looks: int = MAX_LOOKS
    """A read looks at no more records; fewer, where `accept` takes long."""


class Found(NamedTuple):
    """A record that a key query came upon."""

    offset: int
    data: bytes


Done = Callable[[int, LogError | None], None]
"""Called with an append's base offset and None, or with -1 and why it failed."""


class Partition(Protocol):
    """One ordered sequence of records, held open by its log.

    A partition object stays the same one, and usable, until its topic is deleted;
    after that every call raises `NoSuchPartitionError`. A topic that is compacted from
    some time on gets other ones, and the older ones stay usable. Where a log opens
    partitions over a network, every call but `watch` and `unwatch` raises
    `NotReadyError` until that is done, and again after another node took the partition
    over.
    """

    @property
    def topic(self) -> str:
        """The topic it belongs to."""

    @property
    def number(self) -> int:
        """Its number within the topic, 0 to 1023."""

    @property
    def first(self) -> int:
        """The offset of the oldest record that is still there; `end` when empty."""

    @property
    def end(self) -> int:
        """One past the newest record that a reader can see."""

    @property
    def last_end(self) -> int:
        """`end`, or what is known of it, some seconds old, while it is not open."""

    @property
    def appended_bytes(self) -> int:
        """Bytes of all records that this object was given to append; for figures."""

    @property
    def next_offset(self) -> int:
        """The offset that the next `append` will get: `end` plus what is in flight.

        It is certain until the caller gives up the thread, because only that thread
        appends; so a message can carry its own offset. But where others write, too
        (entry format "pulsar"), it is a guess: there `done` tells the offset, and the
        log puts it into the message.
        """

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Store records after all earlier ones, and call `done` when they are durable.

        Args:
            records: At least one; `data` is kept, not copied.
            store_ms: When they were stored, in milliseconds since 1970. Within a
                partition it may not matter to order, but time look-ups use it.
            done: Called once, later, with the offset of the first record, or with
                the error. When an append fails, all appends of the partition behind
                it fail too, so that offsets stay as they were promised.

        Raises:
            LogLimitError: The offset or a record would be beyond the log's limits.
            NoSuchPartitionError: The topic is gone.
            LogBusyError: Too much waits already, or has waited for too long.
            LogUnavailableError: The log refuses appends now, and says why.
        """

    def read_now(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - RocketMQ's own word
    ) -> Chunk | None:
        """Read from memory alone; None where `read` would have to wait for a disk.

        Arguments and promises are those of `read`.
        """

    async def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        filter: Filter | None = None,  # noqa: A002 - RocketMQ's own word
    ) -> Chunk:
        """Read records from an offset on.

        Args:
            offset: Below `first` it counts as `first`; at or past `end` nothing is
                found and `next_offset` is the offset itself.
            max_count: At most so many records, at least 1.
            max_bytes: Stop before the record that would go over; the first record
                that matches comes always.
            filter: Which records are wanted. A read looks at a bounded number of
                records, so it may find nothing and still move on.

        Raises:
            LogDamagedError: A record in the range cannot be trusted.
            LogUnavailableError: The storage did not answer.
        """

    async def offset_at(self, time_ms: int, *, upper: bool = False) -> int:
        """Find an offset by store time.

        Returns:
            The first record stored at or after `time_ms`; `end` where there is none.
            With `upper`, the last record stored at or before it (RocketMQ's upper
            boundary); `first` where there is none.
        """

    async def store_time(self, offset: int) -> int | None:
        """When a record was stored, in milliseconds; None where it is not there."""

    def watch(self, grown: Callable[[], None]) -> None:
        """Call `grown` each time `end` has moved; at most once for one commit.

        Watchers must not raise. Watching twice with one callable counts once.
        """

    def unwatch(self, grown: Callable[[], None]) -> None:
        """Stop calling it; nothing happens where it was not watching."""


class Log(Protocol):
    """An append-only log for many partitions."""

    numbering: Numbering
    """How partitions of this log are numbered best."""

    async def create(
        self,
        topic: str,
        partitions: Collection[int],
        entry_format: EntryFormat = "packed",
        generation: int = 0,
        begins: Mapping[int, int] | None = None,
    ) -> None:
        """Make partitions of a topic; those that exist are left as they are.

        Args:
            topic: Its name.
            partitions: Their numbers.
            entry_format: How its records are kept. The log does not keep it: after
                each opening of the log it is told again, before `partition` is called.
            generation: Which one of those topics that were made under this name, one
                after the other, where nodes share the log; it is told again likewise.
                What `partition` gave of another one is gone.
            begins: By number, at which offset partitions begin, where that is to be
                made sure; others begin at 0. One that begins elsewhere is as if
                retention had deleted what was before. Durable once this returns; a
                kill before leaves the partitions so, or not there.

        Raises:
            LogLimitError: A number is not within 0 to 1023, or an offset is beyond what
                the log can hold.
            BeginsElsewhereError: One is there and begins elsewhere; nothing is made.
            LogUnfitError: That entry format cannot be had here.
            LogUnavailableError: The storage refused.
        """

    async def delete(self, topic: str, generation: int = 0) -> None:
        """Forget a topic; made again, it starts at offset 0. Absent ones are fine.

        Args:
            topic: Its name.
            generation: As of `create`; a log that is one node's has one at a time.

        Raises:
            LogUnavailableError: The storage refused, and the topic is as it was.
        """

    def partition(self, topic: str, number: int) -> Partition:
        """The partition of that name, without waiting.

        Raises:
            NoSuchPartitionError: It was never created, or was deleted.
        """

    async def ready(self, topic: str, numbers: Collection[int] | None = None) -> None:
        """Return when partitions of a topic are open.

        Over a network each takes time, and a topic may have 1,024: so whoever needs
        one asks for that one.

        Args:
            topic: The topic.
            numbers: Of the partitions; None for all that `partition` was asked for.

        Raises:
            LogUnavailableError: They cannot be opened now; the text says why.
            NoSuchPartitionError: There is none.
        """

    def topics(self) -> dict[str, frozenset[int]]:
        """Every topic with the numbers of its partitions."""

    async def hosts(self, topic: str, partitions: Collection[int]) -> dict[int, str]:
        """Which machines serve partitions of a topic, for who wants to be near them.

        Returns:
            The host of each partition that has one, if that is known in a few seconds.
        """

    @property
    def overdue_ms(self) -> Callable[[], int]:
        """Asks how long the oldest append has been on its way, once that is too long.

        Until then, where `waiting_bytes` is 0, and always for a log that does not
        refuse as busy, 0. It saves callers the work on what would be refused.
        """

    @property
    def waiting_bytes(self) -> Callable[[], int]:
        """Asks what is appended and not done takes; an append adds to it at once."""

    @property
    def misfits(self) -> int:
        """How often a partition ended elsewhere than where it was known to.

        A log that keeps messages and their ends in one place has none. Each is said in
        a line, and offsets go on so that no group passes over what comes.
        """

    async def query(
        self, topic: str, key: str, begin_ms: int, end_ms: int, max_count: int
    ) -> list[Found]:
        """Records of a topic that were appended with a key, newest first.

        The index keeps hashes, so a caller checks each record's own keys. Times are
        store times in milliseconds, both bounds included.
        """

    async def flush(self) -> None:
        """Return when all that was appended before is durable on the medium."""

    async def close(self) -> None:
        """Flush, release every resource, refuse further calls. Twice is fine."""
