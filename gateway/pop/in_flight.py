"""What is in consumers' hands: by queue, in memory, as long as it is young.

A *batch* is what one pop took of one queue: at most 32 messages, of which each is open
until it is acknowledged, handed to the ledger, or stored again. A receipt names its
batch by where the pop began and when it was, so an old one never meets a newer hand-out
of the same message.

All of this is data without a clock, a disk or a network.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.gateway.wire.receipt import Receipt

Key = tuple[int, int]
"""How a receipt names a batch of its queue: the start, and the time of the pop."""

MOST_MESSAGES = 200_000
"""Open messages in memory: popCkMaxBufferSize's default."""

SLOT_MS = 100
"""How precisely batches are found when their time has come: never early."""


class Batch(msgspec.Struct, eq=False):
    """What one pop took of one queue."""

    start: int
    """Where the pop began to read."""
    pop_ms: int
    """When it was, in milliseconds since 1970."""
    invisible_ms: int
    """For how long nobody else gets the messages."""
    offsets: Sequence[int]
    """The messages, in order."""
    attempts: int = 0
    """How often it was tried in vain to store them again."""
    open: int = 0
    """A bit for each message that is out, and not done."""
    leaving: bool = False
    """Whether its messages are being stored again: receipts are too late."""

    @property
    def visible_ms(self) -> int:
        """When its messages are for others."""
        return self.pop_ms + self.invisible_ms

    @property
    def lowest(self) -> int:
        """The first message that is open; there is one."""
        return self.offsets[(self.open & -self.open).bit_length() - 1]

    def out_by(self, receipt: Receipt, offset: int) -> int:
        """The bit of a message, if it is out by a receipt of this batch; else 0."""
        if self.leaving or self.invisible_ms != receipt.invisible_ms:
            return 0
        try:
            return self.open & 1 << self.offsets.index(offset)
        except ValueError:
            return 0

    def open_offsets(self) -> list[int]:
        """The messages that are open."""
        return [
            offset
            for index, offset in enumerate(self.offsets)
            if self.open >> index & 1
        ]


class PopQueue:
    """A queue as a group pops it.

    Args:
        group: The group.
        topic: The queue's topic: one that was asked for, or a retry topic.
        queue_id: The queue.
    """

    __slots__ = (
        "batches",
        "buffered",
        "committed",
        "group",
        "kept",
        "low",
        "next_offset",
        "place",
        "queue_id",
        "reading",
        "topic",
    )

    def __init__(self, group: str, topic: str, queue_id: int) -> None:
        self.group = group
        self.topic = topic
        self.queue_id = queue_id
        self.place = group, topic, queue_id
        self.next_offset: int | None = None
        """What is handed out next; None before the first pop."""
        self.committed: int | None = None
        """What was committed last."""
        self.batches: dict[Key, Batch] = {}
        self.buffered = 0
        """Open messages of these batches."""
        self.kept = 0
        """Open messages that the ledger keeps."""
        self.reading = False
        """Whether a pop waits for the disk with it: others leave it out."""
        self.low: list[tuple[int, Key]] = []
        """The batches by what was their lowest open message at some time: a heap."""

    @property
    def done_to(self) -> int | None:
        """All messages before this are done, or in the ledger; None: nobody knows."""
        low = self.low
        while low:
            offset, key = low[0]
            batch = self.batches.get(key)
            if batch is None:
                heapq.heappop(low)
            elif batch.lowest == offset:
                return offset
            else:
                heapq.heapreplace(low, (batch.lowest, key))
        return self.next_offset


class InFlight:
    """Everything that is in consumers' hands and young.

    Args:
        stay_ms: How long a batch stays, at most.
        most: Open messages; of more, each new batch leaves at once.
    """

    def __init__(self, stay_ms: int, most: int = MOST_MESSAGES) -> None:
        self._stay_ms = stay_ms
        self._most = most
        self.buffered = 0
        """Open messages."""
        self._queues: dict[tuple[str, str, int], PopQueue] = {}
        self._slots: dict[int, list[tuple[PopQueue, Batch]]] = {}
        self.unsaid: set[PopQueue] = set()
        """Queues in which something was done since their progress was committed."""
        self.wake: Callable[[], None] = lambda: None
        """Called when there is more to say, or to look at."""
        self.get = self._queues.get
        """The queue of a group, a topic and a queue id; None where there is none."""

    def __iter__(self) -> Iterator[PopQueue]:
        return iter(list(self._queues.values()))

    def queue(self, group: str, topic: str, queue_id: int) -> PopQueue:
        """The same, made where it is missing."""
        place = (group, topic, queue_id)
        queue = self._queues.get(place)
        if queue is None:
            queue = PopQueue(group, topic, queue_id)
            self._queues[queue.place] = queue
        return queue

    def keep(self, queue: PopQueue) -> None:
        """A queue that was not kept until now; nothing where it was."""
        self._queues.setdefault(queue.place, queue)

    def add(self, queue: PopQueue, batch: Batch) -> None:
        """All messages of a batch were handed out."""
        self._queues.setdefault(queue.place, queue)
        key, count = (batch.start, batch.pop_ms), len(batch.offsets)
        assert key not in queue.batches, "a receipt names one batch"
        queue.batches[key] = batch
        batch.open = (1 << count) - 1
        heapq.heappush(queue.low, (batch.offsets[0], key))
        stay_ms = self._stay_ms if self.buffered < self._most else 0
        self.look_again(queue, batch, batch.pop_ms + min(batch.invisible_ms, stay_ms))
        queue.buffered += count
        self.buffered += count
        self.say(queue)

    def say(self, queue: PopQueue) -> None:
        """Have a queue's progress be committed."""
        self.unsaid.add(queue)
        self.wake()

    def renew(self, queue: PopQueue, batch: Batch, bit: int, renewed: Batch) -> None:
        """An open message of a batch is one of its own from now on, for longer."""
        self.close(queue, batch, bit)
        self.add(queue, renewed)

    def look_again(self, queue: PopQueue, batch: Batch, at_ms: int) -> None:
        """Have `take_due` give a batch at a time, if it is open then."""
        slot = -(-at_ms // SLOT_MS)
        self._slots.setdefault(slot, []).append((queue, batch))
        self.wake()

    @property
    def next_ms(self) -> float:
        """When `take_due` may give something next; infinite where nothing is out."""
        return min(self._slots, default=math.inf) * SLOT_MS

    def close(self, queue: PopQueue, batch: Batch, bits: int) -> None:
        """Messages of a batch are done, or elsewhere."""
        bits &= batch.open
        batch.open ^= bits
        count = bits.bit_count()
        queue.buffered -= count
        self.buffered -= count
        # Another may have its key by now, after a reset.
        key = batch.start, batch.pop_ms
        if not batch.open and queue.batches.get(key) is batch:
            del queue.batches[key]
        self.say(queue)

    def empty(self, queue: PopQueue) -> None:
        """Forget what was handed out of a queue: its group goes on elsewhere."""
        for batch in queue.batches.values():
            batch.open = 0
        queue.batches.clear()
        queue.low.clear()
        self.buffered -= queue.buffered
        queue.buffered = 0

    def take_due(self, now_ms: int) -> list[tuple[PopQueue, Batch]]:
        """Batches whose messages are for others now, or that have stayed long enough.

        Each comes once for a time to look at it. It costs what is due.
        """
        due: list[tuple[PopQueue, Batch]] = []
        now_slot = now_ms // SLOT_MS
        for slot in [slot for slot in self._slots if slot <= now_slot]:
            due += [pair for pair in self._slots.pop(slot) if pair[1].open]
        return due

    def forget(self, *, group: str | None = None, topic: str | None = None) -> None:
        """A group or a topic is gone."""
        for place, queue in list(self._queues.items()):
            if group in (None, queue.group) and topic in (None, queue.topic):
                self.empty(queue)
                self.unsaid.discard(queue)
                del self._queues[place]

    def leave(self, topic: str, queue_id: int) -> None:
        """A queue is not this broker's any more, or only since now."""
        for place, queue in list(self._queues.items()):
            if place[1:] == (topic, queue_id):
                self.empty(queue)
                self.unsaid.discard(queue)
                del self._queues[place]

    def clear(self) -> None:
        """Another node leads."""
        self._queues.clear()
        self._slots.clear()
        self.unsaid.clear()
        self.buffered = 0
