"""Receipts that come back: messages that are done, or kept for longer.

A receipt counts while its message is out by that very hand-out. One that was used, is
too late, or was never given changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node.names import ORDER_SIGN
from ropeway.gateway.pop.in_flight import Batch
from ropeway.gateway.pop.revive import original_topic

if TYPE_CHECKING:
    from ropeway.common.eager import Eventual
    from ropeway.gateway.pop.context import PopContext
    from ropeway.gateway.pop.in_flight import PopQueue
    from ropeway.gateway.pop.order import Page, Place
    from ropeway.gateway.wire.receipt import Receipt


class Renewed(NamedTuple):
    """What makes the next receipt of a message whose time was changed."""

    pop_ms: int
    invisible_ms: int


class Acks:
    """Takes receipts."""

    def __init__(self, context: PopContext) -> None:
        self._limit = context.config.in_flight
        self._offsets = context.broker.offsets
        self._resets = context.resets
        self._in_flight = context.in_flight
        self._ledger = context.ledger
        self._book = context.book
        self._polling = context.polling
        self._clock = context.broker.clock

    def done(self, place: Place, receipt: Receipt, offset: int) -> Eventual[bool]:
        """A message is done; False where it is not out by that receipt.

        Raises:
            LogError: The ledger cannot be written now.
        """
        queue = self._in_flight.get(place)
        if queue is None:
            return False
        batch = queue.batches.get((receipt.start, receipt.pop_ms))
        if batch is not None:
            bit = batch.out_by(receipt, offset)
            if not bit:
                return False
            self._in_flight.close(queue, batch, bit)
            if queue.buffered + queue.kept == self._limit - 1:
                self._wake(queue)
            return True
        if queue.kept:
            return self._done_in_ledger(queue, receipt, offset)
        return False

    async def _done_in_ledger(
        self, queue: PopQueue, receipt: Receipt, offset: int
    ) -> bool:
        if not await self._ledger.close_message(queue.place, receipt, offset):
            return False
        queue.kept -= 1
        if queue.buffered + queue.kept == self._limit - 1:
            self._wake(queue)
        return True

    def keep(
        self, place: Place, receipt: Receipt, offset: int, invisible_ms: int
    ) -> Eventual[Renewed | None]:
        """Keep a message for a time from now; None where it is not out so.

        Raises:
            LogError: The ledger cannot be written now.
        """
        queue = self._in_flight.get(place)
        if queue is None:
            return None
        batch = queue.batches.get((receipt.start, receipt.pop_ms))
        if batch is None:
            if not queue.kept:
                return None
            return self._keep_in_ledger(place, receipt, offset, invisible_ms)
        bit = batch.out_by(receipt, offset)
        if not bit:
            return None
        pop_ms = self._clock()
        while (offset, pop_ms) in queue.batches:
            # The batch that it comes from was popped a moment ago.
            pop_ms += 1
        renewed = Batch(offset, pop_ms, invisible_ms, (offset,))
        self._in_flight.renew(queue, batch, bit, renewed)
        return Renewed(pop_ms, invisible_ms)

    async def _keep_in_ledger(
        self, place: Place, receipt: Receipt, offset: int, invisible_ms: int
    ) -> Renewed | None:
        # Progress is past the message: in memory alone it could be lost.
        pop_ms = self._clock()
        until_ms = pop_ms + invisible_ms
        if await self._ledger.renew(place, receipt, offset, pop_ms, until_ms):
            return Renewed(pop_ms, invisible_ms)
        return None

    def _wake(self, queue: PopQueue) -> None:
        topic = original_topic(queue.group, queue.topic)
        own = topic == queue.topic
        self._polling.wake((queue.group, topic), queue.queue_id if own else -1)

    # In order.

    def done_in_order(self, place: Place, receipt: Receipt, offset: int) -> bool:
        """A message is done that was popped in order; False where it is not out so."""
        page = self._book.find(place, receipt.pop_ms, offset)
        if page is None:
            return False
        page.open.discard(offset)
        page.used_ms = self._clock()
        group, topic, queue_id = place
        if not (self._resets.pending and self._resets.get(group, topic, queue_id)):
            self._offsets.commit(group, topic, queue_id, page.next_offset)
        self._note_free(place, page)
        if not self._book.blocks(place, None, page.used_ms):
            self._polling.wake((group, topic), queue_id)
        return True

    def keep_in_order(
        self, place: Place, receipt: Receipt, offset: int, invisible_ms: int
    ) -> Renewed | None:
        """Keep a message for a time from now; None where it is not out so."""
        page = self._book.find(place, receipt.pop_ms, offset)
        if page is None:
            return None
        page.used_ms = self._clock()
        visible_ms = page.used_ms + invisible_ms
        page.visible_ms[offset] = visible_ms
        self._note_free(place, page)
        return Renewed(page.pop_ms, visible_ms - page.pop_ms)

    def _note_free(self, place: Place, page: Page) -> None:
        group, topic, queue_id = place
        free_ms = page.free_ms
        self._book.look_at(place, free_ms)
        self._offsets.commit(group, ORDER_SIGN + topic, queue_id, free_ms)
