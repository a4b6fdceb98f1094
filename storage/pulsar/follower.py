"""A partition that another node writes: what is stored is followed, and read here.

Law: nothing is written, and nobody is fenced. Pulsar hands out only what its bookies
have acknowledged, and a term's first entry parts what counts from what never will. So
whatever a follower lets readers see, the owner has, at the same offset; it may be late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.pulsar.end_search import Search, ends
from ropeway.storage.pulsar.entry_reader import damaged, unavailable, unpack
from ropeway.storage.pulsar.errors import EntryError, PulsarError
from ropeway.storage.pulsar.newest import Newest
from ropeway.storage.pulsar.terms import next_offset_of, term_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.storage.api import Done, RecordParts
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.pack import Pack
    from ropeway.storage.pulsar.partition import PulsarPartition


class Follower:
    """What an open partition has in place of a way in, where another node owns it.

    Args:
        partition: Which one.
        term: Of the newest entry as of its opening.
        lost: Called when entries cannot be followed any more.
    """

    def __init__(
        self,
        partition: PulsarPartition,
        term: int,
        lost: Callable[[PulsarError], None],
    ) -> None:
        self._partition = partition
        self._term = term
        """Of the last entry that came; the next one's is no older."""
        self._lost = lost
        self._newest = Newest(partition, self._take, lost)
        self._failed = False

    async def open(self, client: PulsarClient, after: Position) -> None:
        """Begin to follow what comes behind an entry.

        Raises:
            PulsarError: Refused, or not possible in time.
        """
        await self._newest.open(client, after)

    def begin(self) -> None:
        """The partition is open: take what has come so far."""
        self._newest.begin()

    def _take(self, entry: Entry) -> None:
        if self._failed:
            return
        partition = self._partition
        try:
            pack = unpack(partition, entry)
            self._check(entry, pack)
        except LogError as error:
            self._failed = True
            self._lost(EntryError(str(error)))
            return
        if pack.count:
            data = bytes(entry.payload)
            partition.keep(data, pack.base_offset, pack.times[0], entry.position)
            partition.end_offset = pack.end
            self._newest.tell()

    def _check(self, entry: Entry, pack: Pack) -> None:
        """See that an entry may follow the one before."""
        partition = self._partition
        term = term_of(entry.sequence_id)
        if term < self._term:
            raise damaged(
                partition,
                entry.position,
                f"of term {term}; allowed behind the one before: {self._term} or more",
            )
        self._term = term
        if next_offset_of(entry.sequence_id) is None:
            return
        end = partition.end_offset
        if not pack.count and pack.base_offset > end:
            # Its owner knew of more than the topic told; see `end_offsets`.
            partition.gaps[end] = pack.base_offset
            partition.end_offset = pack.base_offset
            self._newest.tell()
        elif pack.base_offset != end:
            raise damaged(
                partition,
                entry.position,
                f"from offset {pack.base_offset} on; allowed: {end}",
            )

    @property
    def next_offset(self) -> int:
        """What the owner's next append gets, as far as is known here."""
        return self._partition.end_offset

    @property
    def is_idle(self) -> bool:
        """Always: nothing is on its way from here."""
        return True

    @property
    def oldest_at(self) -> float:
        """Never asked for."""
        self._refuse()

    @property
    def is_shut_out(self) -> bool:
        """Never: nothing is on its way from here."""
        return False

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Refuse: another node writes."""
        del records, store_ms, done
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise LogUnavailableError(
            f"{self._partition.full_name} is another node's; it is read here"
        )

    async def drained(self) -> None:
        """At once: nothing is on its way."""

    def give_up(self) -> None:
        """Nothing: nothing is on its way."""

    def fail(self, reason: str) -> None:
        """Take nothing any more."""
        del reason
        self._failed = True

    async def close(self) -> None:
        """Let no more entries come."""
        await self._newest.close()


class Followed(NamedTuple):
    """A partition that is followed."""

    appender: Follower
    first: int
    end: int
    oldest_ledger: int


async def open_followed(
    client: PulsarClient,
    admin: Admin,
    partition: PulsarPartition,
    lost: Callable[[PulsarError], None],
) -> Followed:
    """Find a partition's ends, and follow what its owner stores from there on.

    Raises:
        LogUnavailableError: It cannot be had now, or only its owner can tell the end.
        LogDamagedError: The entries at its ends cannot be trusted.
        NoSuchPartitionError: There is no such topic.
    """
    oldest, newest = await ends(client, partition)
    told = newest
    if newest is not None and not newest.tells:
        told = await Search(client, admin, partition, 0).before(newest.position, None)
    if newest is None or told is None:
        raise LogUnavailableError(
            f"{partition.full_name} holds nothing that tells where it ends; only the "
            "node that owns it knows"
        )
    for found in (oldest, told):
        if found is not None and found.pack.count:
            partition.positions.add(*found.spot)
    follower = Follower(partition, newest.term, lost)
    try:
        await follower.open(client, newest.position)
    except PulsarError as error:
        raise unavailable(partition, error) from error
    first, ledger = told.pack.end, newest.position.ledger
    if oldest is not None:
        first, ledger = min(oldest.pack.base_offset, first), oldest.position.ledger
    return Followed(follower, first, told.pack.end, ledger)
