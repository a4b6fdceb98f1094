"""What becomes of messages that stay in hand: into the ledger, and back again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.pop.ledger import change_of
from ropeway.gateway.pop.revive import back_off_ms, original_topic
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from ropeway.gateway.pop.context import PopContext
    from ropeway.gateway.pop.in_flight import Batch, PopQueue
    from ropeway.gateway.pop.revive import Revive
    from ropeway.gateway.pop.store import Entry, Place

log = structlog.get_logger(__name__)

DUE_COUNT = 512
"""Batches that are stored again together."""
_RETRY_MS = 1000


class Upkeep:
    """Moves what stays in hand.

    Args:
        context: What is young, what is not, and pops that wait.
        revive: Stores messages again.
    """

    def __init__(self, context: PopContext, revive: Revive) -> None:
        self._in_flight = context.in_flight
        self._ledger = context.ledger
        self._revive = revive
        self._polling = context.polling
        self._clock = context.broker.clock

    async def keep(self, kept: Sequence[tuple[PopQueue, Batch]]) -> None:
        """Move batches to the ledger."""
        batches = [(queue, batch, batch.open) for queue, batch in kept if batch.open]
        if not batches:
            return
        changes = [change_of(queue.place, batch) for queue, batch, _ in batches]
        try:
            await self._ledger.put(changes)
        except (LogError, RouteError) as error:
            log.warning("pops wait to be written down", reason=str(error))
            again_ms = self._clock() + _RETRY_MS
            for queue, batch, _ in batches:
                self._in_flight.look_again(queue, batch, again_ms)
            return
        late = []
        for (queue, batch, before), change in zip(batches, changes, strict=True):
            if batch.open != before:
                # Some were acknowledged meanwhile.
                late.append((change[0], change_of(queue.place, batch)[1]))
            queue.kept += batch.open.bit_count()
            self._in_flight.close(queue, batch, batch.open)
        if late:
            await self._put_late(late)

    async def _put_late(self, late: list[tuple[bytes, bytes]]) -> None:
        try:
            await self._ledger.put(late)
        except (LogError, RouteError) as error:
            log.warning("acknowledged messages may come again", reason=str(error))

    # What comes back.

    async def bring(
        self, due: Sequence[tuple[PopQueue, Batch]], *, later: bool = False
    ) -> None:
        """Store messages again that were young; later, so that they come in time."""
        stored = (self._again(queue.place, batch, later) for queue, batch in due)
        outcomes = await asyncio.gather(*stored, return_exceptions=True)
        woken = set()
        for (queue, batch), out in zip(due, outcomes, strict=True):
            self._in_flight.close(queue, batch, batch.open & ~_stay(batch, out))
            woken.add((queue.group, original_topic(queue.group, queue.topic)))
            if batch.open:
                batch.leaving = False
                again_ms = self._clock() + back_off_ms(batch.attempts)
                batch.attempts += 1
                self._in_flight.look_again(queue, batch, again_ms)
        self._wake(woken)

    def _again(
        self, place: Place, batch: Batch | Entry, later: bool
    ) -> Awaitable[set[int]]:
        due_ms = batch.visible_ms if later else None
        return self._revive.bring(place, batch.open_offsets(), batch.pop_ms, due_ms)

    async def look(self, now_ms: int) -> None:
        """Store messages again that the ledger has had for long enough."""
        try:
            while entries := await self._ledger.take_due(now_ms, DUE_COUNT):
                await self._settle(entries)
            await self._ledger.plan()
        except IndexLostError as error:
            log.warning("messages that are due wait", reason=str(error))

    async def _settle(self, entries: Sequence[Entry], *, later: bool = False) -> None:
        stored = (self._again(one.place, one, later) for one in entries)
        outcomes = await asyncio.gather(*stored, return_exceptions=True)
        now_ms = self._clock()
        settled = []
        for one, out in zip(entries, outcomes, strict=True):
            bits = _stay(one, out)
            settled.append((one, bits, now_ms + back_off_ms(one.attempts)))
        await self._ledger.settle(settled)
        woken = set()
        for one, bits, _ in settled:
            group, topic, _ = one.place
            queue = self._in_flight.get(one.place)
            if queue is not None:
                queue.kept -= (one.open & ~bits).bit_count()
            woken.add((group, original_topic(group, topic)))
        self._wake(woken)

    async def settle_queue(self, place: Place) -> None:
        """Turn what the ledger has of a queue into retries that come at their time.

        What cannot be stored again stays in the ledger.

        Raises:
            IndexLostError: The ledger's store cannot be used.
        """
        entries = await self._ledger.take_of(place)
        for at in range(0, len(entries), DUE_COUNT):
            await self._settle(entries[at : at + DUE_COUNT], later=True)

    async def roll_back(self) -> int:
        """Turn all that is in hand into retries that come when its time is over.

        Receipts of it are too late from then on. It tells how many messages that were.
        What cannot be stored again stays in hand.

        Raises:
            IndexLostError: The ledger's store cannot be used.
        """
        young = [
            (queue, batch)
            for queue in self._in_flight
            for batch in list(queue.batches.values())
            if not batch.leaving
        ]
        count = sum(batch.open.bit_count() for _, batch in young)
        for _, batch in young:
            batch.leaving = True
        for at in range(0, len(young), DUE_COUNT):
            await self.bring(young[at : at + DUE_COUNT], later=True)
        after, more = b"", True
        while more:
            entries, after = await self._ledger.take_any(after, DUE_COUNT)
            count += sum(one.open.bit_count() for one in entries)
            await self._settle(entries, later=True)
            more = bool(after)
        return count

    def _wake(self, woken: Iterable[tuple[str, str]]) -> None:
        for group, topic in woken:
            self._polling.wake((group, topic))


def _stay(batch: Batch | Entry, out: set[int] | BaseException) -> int:
    """The bits of those messages of a batch that stay out."""
    if isinstance(out, BaseException):
        log.error("popped messages stay out", exc_info=out)
        return batch.open
    bits = sum(1 << index for index, one in enumerate(batch.offsets) if one in out)
    return batch.open & bits
