"""What is in consumers' hands for long: batches by receipt, and by their time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.pop import store
from ropeway.gateway.pop.journal import Journal
from ropeway.gateway.pop.store import Store
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.pop.in_flight import Batch
    from ropeway.gateway.pop.store import Change, Entry, Place
    from ropeway.gateway.wire.receipt import Receipt

log = structlog.get_logger(__name__)

_RETRY_MS = 1000


class Ledger:
    """The batches that are out for long.

    Args:
        broker: Whose topics have the system topic, or will with the first batch.
        directory: The store's.
        longest_ms: Nothing stays out for longer.
    """

    def __init__(self, broker: BrokerContext, directory: Path, longest_ms: int) -> None:
        self.longest_ms = longest_ms
        """The longest time for which a message can be kept from others."""
        self._journal = Journal(broker, directory, self._came)
        self._clock = broker.clock
        self._leaving: set[bytes] = set()
        """Batches that are being stored again."""
        self._unnoted: list[Change] = []
        """What came of some that were, where the log could not note it yet."""
        self._done_ms = 0
        """Nothing in the store was visible before, or at that time."""
        self.look_ms = 0
        """When to look for what is due, at the latest."""
        self.wake: Callable[[], None] = lambda: None
        """Called when that is earlier than it was."""
        self.is_open = self._journal.is_open
        self.status = self._journal.status
        self.is_writing = self._journal.is_writing
        self.lost = self._journal.lost
        """Set when the store cannot be used, or does not follow the log."""

    async def open(
        self, counted: Callable[[Counter[Place]], None], *, anew: bool
    ) -> None:
        """Have in the store what the log says.

        Args:
            counted: Called with how many messages are out, by queue, when that is so.
            anew: Forget what the store has.

        Raises:
            LogError: The log cannot be read now.
            IndexLostError: The directory cannot be used.
        """
        self._done_ms = self.look_ms = 0
        # They are counted once more.
        self._leaving.difference_update(key for key, _ in self._unnoted)
        self._unnoted.clear()
        await self._journal.open(counted, anew=anew)

    async def close(self) -> None:
        """Release the store. What it is told from now on is in the log alone."""
        await self._journal.close()
        self._unnoted.clear()
        self._leaving.clear()

    async def put(self, changes: Iterable[Change]) -> None:
        """Note that batches are out, or are out no more.

        Raises:
            LogError: That cannot be noted now.
        """
        await self._journal.put(changes)

    def _came(self, changes: Sequence[Change]) -> None:
        """Changes are in the store now: some may be due before all that was there."""
        for key, value in changes:
            if value:
                visible_ms = store.visible_ms_of(key)
                self._done_ms = min(self._done_ms, visible_ms - 1)
                self._look_by(visible_ms)

    def _look_by(self, at_ms: int) -> None:
        """Have somebody look at a time, at the latest."""
        if at_ms < self.look_ms:
            self.look_ms = at_ms
            self.wake()

    # Receipts.

    async def close_message(self, place: Place, receipt: Receipt, offset: int) -> bool:
        """A message is done; False where it is not out by that receipt.

        Raises:
            LogError: That cannot be noted now.
        """
        found = await self._find(place, receipt, offset)
        if found is None:
            return False
        await self._journal.put([found])
        return True

    async def renew(
        self, place: Place, receipt: Receipt, offset: int, pop_ms: int, visible_ms: int
    ) -> bool:
        """Keep a message until a time; False where it is not out by that receipt.

        Raises:
            LogError: That cannot be noted now.
        """
        found = await self._find(place, receipt, offset)
        if found is None:
            return False
        again = store.key_of(place, offset, pop_ms, visible_ms)
        await self._journal.put([found, (again, store.value_of(0, 1, (offset,)))])
        return True

    async def _find(self, place: Place, receipt: Receipt, offset: int) -> Change | None:
        """The change that closes a message; nothing may come between it and `put`."""
        visible_ms = receipt.pop_ms + receipt.invisible_ms
        try:
            key = store.key_of(place, receipt.start, receipt.pop_ms, visible_ms)
        except ValueError:
            return None
        value = await self._journal.get(key)
        if not value or key in self._leaving:
            return None
        entry = store.entry_of(key, value)
        if offset not in entry.offsets:
            return None
        bit = 1 << entry.offsets.index(offset)
        if not entry.open & bit:
            return None
        return key, _value(entry, entry.open & ~bit)

    # What is over.

    async def take_due(self, now_ms: int, max_count: int) -> list[Entry]:
        """The batches whose messages are visible now; their receipts are too late.

        Each is to be settled. It costs what is due.

        Raises:
            IndexLostError: The store cannot be used.
        """
        await self._note()
        after_ms, self._done_ms = self._done_ms, now_ms
        found = await self._journal.run(Store.due, after_ms, now_ms, max_count)
        if len(found) == max_count:
            last_ms = store.visible_ms_of(found[-1][0])
            self._done_ms = min(self._done_ms, last_ms - 1)
        return self._take(found)

    async def take_any(self, after: bytes, max_count: int) -> tuple[list[Entry], bytes]:
        """Batches in order, whatever their time; and where to go on, or nothing.

        Each is to be settled.

        Raises:
            IndexLostError: The store cannot be used.
        """
        found = await self._journal.run(Store.page, after, max_count)
        return self._take(found), found[-1][0] if len(found) == max_count else b""

    async def take_of(self, place: Place) -> list[Entry]:
        """The batches of a queue, whatever their time; each is to be settled.

        Raises:
            IndexLostError: The store cannot be used.
        """
        return self._take(await self._journal.run(Store.of_place, place))

    def _take(self, found: Sequence[Change]) -> list[Entry]:
        entries = []
        for key, stored in found:
            value = self._journal.newest(key, stored)
            if value and key not in self._leaving:
                self._leaving.add(key)
                entries.append(store.entry_of(key, value))
        return entries

    async def plan(self) -> None:
        """Look again when more is due.

        Raises:
            IndexLostError: The store cannot be used.
        """
        next_ms = await self._journal.run(Store.next_ms, self._done_ms)
        if next_ms is not None:
            self._look_by(next_ms)

    async def settle(self, settled: Sequence[tuple[Entry, int, int]]) -> None:
        """Note what came of batches that were due.

        Where the log cannot note it now it is noted with the next look. Only after a
        kill before that do they come again.

        Args:
            settled: For each the bits of what stays out, and until when.
        """
        for entry, out, until_ms in settled:
            self._unnoted.append((_key(entry), b""))
            if out:
                again = store.key_of(entry.place, entry.start, entry.pop_ms, until_ms)
                value = store.value_of(entry.attempts + 1, out, entry.offsets)
                self._unnoted.append((again, value))
        await self._note()

    async def _note(self) -> None:
        """Note what came of batches, if that can be done now."""
        changes, self._unnoted = self._unnoted, []
        if not changes:
            return
        try:
            await self._journal.put(changes)
        except LogError as error:
            log.warning("messages that came back are noted later", reason=str(error))
            self._unnoted = changes + self._unnoted
            self._look_by(self._clock() + _RETRY_MS)
        else:
            self._leaving.difference_update(key for key, _ in changes)

    async def drop(self, place: Place) -> None:
        """A group was moved in a queue: what it had in hand there is forgotten.

        Raises:
            LogError: That cannot be noted now.
            IndexLostError: The store cannot be used.
        """
        found = await self._journal.run(Store.of_place, place)
        await self._journal.put([(key, b"") for key, _ in found])


def change_of(place: Place, batch: Batch) -> Change:
    """The change that puts a batch into the ledger, or out of it where none is open."""
    key = store.key_of(place, batch.start, batch.pop_ms, batch.visible_ms)
    if not batch.open:
        return key, b""
    return key, store.value_of(batch.attempts, batch.open, batch.offsets)


def _key(entry: Entry) -> bytes:
    return store.key_of(entry.place, entry.start, entry.pop_ms, entry.visible_ms)


def _value(entry: Entry, open_bits: int) -> bytes:
    if not open_bits:
        return b""
    return store.value_of(entry.attempts, open_bits, entry.offsets)
