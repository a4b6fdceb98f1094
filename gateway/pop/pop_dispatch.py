"""Giving messages out: from what a pop asks for to what it gets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ropeway.gateway.node.names import ORDER_SIGN
from ropeway.gateway.pop.in_flight import Batch, PopQueue
from ropeway.gateway.pop.pop_receive import (
    MAX_BYTES,
    Taken,
    as_asked_for,
    offsets_of,
    places,
)
from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.receipt import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ropeway.common.eager import Eventual
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.pop.context import PopContext
    from ropeway.gateway.pop.pop_receive import Place, Wanted
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.storage.api import Chunk, Partition


class PopDispatch:
    """Hands messages out.

    Args:
        context: Whose messages they are, and what is out.
        moved: Called with a queue in which a group was moved.
    """

    def __init__(self, context: PopContext, moved: Callable[[PopQueue], None]) -> None:
        broker = context.broker
        self._name = broker.name
        self._switches = context.switches
        self._limit = context.config.in_flight
        self._topics = broker.topics
        self._offsets = broker.offsets
        self._resets = context.resets
        self._pulled = context.pulled
        self._in_flight = context.in_flight
        self._book = context.book
        self._polling = context.polling
        self._moved = moved
        self._clock = broker.clock
        self._pops: defaultdict[tuple[str, str], int] = defaultdict(int)

    def pop(self, wanted: Wanted, *, from_memory: bool = False) -> Eventual[Taken]:
        """Hand out what there is; or of that, what is in memory.

        Returns:
            What was taken; or that later, where the disk has to be waited for.

        Raises:
            LogError: As in `Partition.read_now`; nothing was handed out then.
        """
        key = (wanted.group, wanted.topic)
        turn = self._pops[key]
        self._pops[key] = turn + 1
        taken = Taken(wanted, self._clock())
        if not self._switches.gives:
            return taken
        rest = places(self._topics, wanted, turn)
        try:
            for place in rest:
                if not self._take_now(taken, place, no_cold=from_memory):
                    if not from_memory:
                        return self._take_on(taken, place, rest)
                    taken.cold = True
        except Exception:
            if not taken.count:
                raise
            # What was taken is given; who comes next meets the fault.
        return taken

    def is_there(self, wanted: Wanted) -> bool:
        """Whether a pop would find something; filters are left out of account."""
        now_ms = self._clock()
        if not self._switches.gives:
            return False
        return any(
            start < partition.end and not self._is_shut(queue, wanted, now_ms)
            for queue, partition, start in self._looks(wanted, 1)
        )

    async def peek(self, wanted: Wanted) -> tuple[list[Buffer], int]:
        """The next messages, which stay there, and about how many there are in all.

        Raises:
            LogError: As in `Partition.read`.
        """
        data: list[Buffer] = []
        room, left, rest = MAX_BYTES, wanted.max_count, 0
        turn = self._pops[wanted.group, wanted.topic]
        for _, partition, start in self._looks(wanted, turn):
            rest += partition.end - start
            if left > 0 and start < partition.end:
                chunk = await partition.read(start, left, room)
                data += chunk.data
                left -= chunk.records
                room -= sum(map(len, chunk.data))
        return data, rest

    def _looks(
        self, wanted: Wanted, turn: int
    ) -> Iterator[tuple[PopQueue, Partition, int]]:
        """The queues of a pop that takes nothing, and where its group goes on."""
        for topic, queue_id, _, _ in places(self._topics, wanted, turn):
            place = wanted.group, topic.name, queue_id
            queue = self._in_flight.get(place) or self._unseen(topic, place)
            partition = topic.partitions[queue_id]
            yield queue, partition, self._next(queue, partition, wanted)

    def _take_now(self, taken: Taken, place: Place, *, no_cold: bool = False) -> bool:
        """Take from a queue what is in memory; False where the disk has to be read.

        Args:
            taken: What was taken from other queues.
            place: The queue.
            no_cold: Likewise where it is a tier's, although it was fetched already.
        """
        topic, queue_id, _, wanted_of_it = place
        wanted = taken.wanted
        known_as = wanted.group, topic.name, queue_id
        queue = self._in_flight.get(known_as) or self._unseen(topic, known_as)
        partition = topic.partitions[queue_id]
        if self._resets.pending:
            self._follow_reset(queue)
        end = partition.end
        offset = queue.next_offset
        full = taken.count >= wanted.max_count
        if offset is not None and (full or offset == end) and not wanted.in_order:
            # A pop that has enough is only told how many more there are.
            taken.rest += max(end - offset, 0)
            return True
        if queue.reading or self._is_shut(queue, wanted, taken.pop_ms):
            return True
        start = self._next(queue, partition, wanted)
        if start >= end:
            return True
        if full:
            taken.rest += end - start
            return True
        chunk = partition.read_now(
            start, wanted.max_count - taken.count, taken.room, wanted_of_it
        )
        if chunk is None or (no_cold and chunk.cold):
            return False
        self._took(taken, place, queue, start, chunk)
        return True

    async def _take_on(
        self, taken: Taken, place: Place, rest: Iterator[Place]
    ) -> Taken:
        """Take on where the disk has to be read."""
        try:
            await self._take(taken, place)
            for one in rest:
                if not self._take_now(taken, one):
                    await self._take(taken, one)
        except Exception:
            if not taken.count:
                raise
        return taken

    async def _take(self, taken: Taken, place: Place) -> None:
        topic, queue_id, kind, wanted_of_it = place
        wanted = taken.wanted
        queue = self._in_flight.queue(wanted.group, topic.name, queue_id)
        partition = topic.partitions[queue_id]
        start = self._next(queue, partition, wanted)
        queue.reading = True
        try:
            chunk = await partition.read(
                start, wanted.max_count - taken.count, taken.room, wanted_of_it
            )
        finally:
            queue.reading = False
        still = self._in_flight.get(queue.place)
        if still is queue and self._next(queue, partition, wanted) == start:
            self._took(taken, place, queue, start, chunk)
        else:
            # The group was moved meanwhile: it looks there next.
            taken.more = True
        # Others may have left it out meanwhile, and wait.
        key = wanted.group, wanted.topic
        self._polling.wake(key, queue_id if not kind else -1)

    def _unseen(self, topic: ServedTopic, place: tuple[str, str, int]) -> PopQueue:
        """A queue that a group has not popped; kept only where it says something.

        Or else a look at each queue of very many topics, in very many groups, would
        stay in memory.
        """
        partition, offset = topic.partitions[place[2]], self._offsets.get(*place)
        if partition.first <= (offset or 0) <= partition.end:
            return PopQueue(*place)
        # Where the group goes on is by what is there now, not at the next look.
        return self._in_flight.queue(*place)

    def _is_shut(self, queue: PopQueue, wanted: Wanted, now_ms: int) -> bool:
        """Whether a queue gives nothing until something is acknowledged."""
        if wanted.in_order:
            place = queue.place
            return self._book.blocks(place, wanted.attempt, now_ms)
        return queue.buffered + queue.kept >= self._limit

    def _next(self, queue: PopQueue, partition: Partition, wanted: Wanted) -> int:
        """Where a group goes on in a queue: within what is there."""
        offset = queue.next_offset
        if offset is None or wanted.in_order:
            offset = self._offsets.get(*queue.place)
        if offset is None:
            offset = _first(partition, queue.topic, wanted)
        offset = min(max(offset, partition.first), partition.end)
        queue.next_offset = offset
        return offset

    def _took(
        self, taken: Taken, place: Place, queue: PopQueue, start: int, chunk: Chunk
    ) -> None:
        topic, queue_id, kind, wanted_of_it = place
        wanted = taken.wanted
        end = topic.partitions[queue_id].end
        taken.rest += end - chunk.next_offset
        pulled = self._pulled.of_topics[queue.topic]
        pulled[queue.group, queue_id] = chunk.next_offset
        if not chunk.records:
            taken.more = taken.more or chunk.next_offset < end
            self._pass_over(queue, chunk.next_offset, wanted)
            return
        offsets = offsets_of(chunk, filtered=wanted_of_it is not None)
        if wanted.in_order:
            self._take_in_order(taken, queue, kind, offsets)
        else:
            queue.next_offset = chunk.next_offset
            batch = Batch(start, taken.pop_ms, wanted.invisible_ms, offsets)
            self._in_flight.add(queue, batch)
        if kind:
            stub = Receipt(
                start,
                taken.pop_ms,
                wanted.invisible_ms,
                0,
                kind,
                self._name,
                queue_id,
            )
            original = self._topics.get(wanted.topic)
            assert original is not None, "its queues come from there"
            chunk = as_asked_for(chunk, original, stub)
        taken.put(kind, queue_id, start, chunk, offsets)

    def _pass_over(self, queue: PopQueue, next_offset: int, wanted: Wanted) -> None:
        """Nothing was wanted of what was looked at."""
        self._in_flight.keep(queue)
        queue.next_offset = next_offset
        if wanted.in_order:
            self._offsets.commit(queue.group, queue.topic, queue.queue_id, next_offset)
        else:
            self._in_flight.say(queue)

    def _take_in_order(
        self, taken: Taken, queue: PopQueue, kind: int, offsets: Sequence[int]
    ) -> None:
        wanted = taken.wanted
        self._in_flight.keep(queue)
        page = self._book.note(
            queue.place,
            wanted.attempt,
            taken.pop_ms,
            wanted.invisible_ms,
            offsets,
        )
        least = min(page.counts.values()) if page.counts else 0
        if len(page.counts) < len(page.offsets):
            least = 0
        taken.orders.append(
            receipt.order_info(kind, queue.queue_id, page.counts, least)
        )
        self._say_blocked(queue, page.free_ms)

    def _say_blocked(self, queue: PopQueue, free_ms: int) -> None:
        """Whoever takes over keeps the order, and waits until then."""
        self._offsets.commit(
            queue.group, ORDER_SIGN + queue.topic, queue.queue_id, free_ms
        )

    def _follow_reset(self, queue: PopQueue) -> None:
        """The group was moved: forget what is out, and go on there."""
        offset = self._resets.take(*queue.place)
        if offset is None:
            return
        self._in_flight.keep(queue)
        self._moved(queue)
        queue.next_offset = queue.committed = offset


def _first(partition: Partition, topic: str, wanted: Wanted) -> int:
    """Where a group begins in a queue that it never consumed."""
    if (
        wanted.from_earliest
        or receipt.kind_of(topic) != receipt.NORMAL
        # It still has its first message: a new group loses nothing that comes before
        # its first pop.
        or partition.first == 0
    ):
        return partition.first
    return max(partition.end - 1, partition.first)
