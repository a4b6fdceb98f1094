"""Where messages of lite topics are, in RocksDB: made again from the log if lost.

    "m" parent 0 lite 0 place  ->                     a message of a lite topic
    "o" parent 0 place         ->  lite               the same, in the queue's order
    "t" parent 0 lite          ->  time (8), place*   a lite topic: when its last
                                                      message was stored, and one past
                                                      the last one in each queue
    "n" parent 0 queue id (4)  ->                     the checkpoint of a queue: see
                                                      `DerivedStore`

    place  queue id (4) offset (8)

Numbers are big endian, times are milliseconds since 1970; names have no 0 in them. So
a lite topic's messages lie together, in the order of their queue, and what retention
has taken of a queue is in front.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node.derived_store import CHECKPOINT, DerivedStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.node.derived_store import Checkpoint


_MESSAGE, _ORDER, _TOPIC = b"m", b"o", b"t"
_PLACE = struct.Struct(">IQ")
_TIME = struct.Struct(">Q")
_QUEUE = struct.Struct(">I")


class Noted(NamedTuple):
    """A message of a lite topic."""

    lite: str
    offset: int
    store_ms: int


class Known(NamedTuple):
    """A lite topic, as the store knows it."""

    lite: str
    last_ms: int
    """When its last message was stored."""
    ends: dict[int, int]
    """One past its last message, by queue."""


def _key(kind: bytes, parent: str, *rest: bytes) -> bytes:
    return b"".join((kind, parent.encode(), b"\x00", *rest))


def _source(parent: str, queue_id: int) -> bytes:
    return _key(b"", parent, _QUEUE.pack(queue_id))


def _name(lite: str) -> bytes:
    return lite.encode() + b"\x00"


class Store(DerivedStore):
    """The index in a directory; one process, one thread at a time.

    Args:
        directory: Made where it is missing.
    """

    def checkpoint_of(self, parent: str, queue_id: int) -> Checkpoint | None:
        """How far a queue was noted; None where it was not."""
        return self.checkpoint(_source(parent, queue_id))

    def note(
        self,
        parent: str,
        queue_id: int,
        messages: Sequence[Noted],
        topics: Sequence[Known],
        checkpoint: Checkpoint,
    ) -> None:
        """Note messages of a queue, together.

        Args:
            parent: The topic.
            queue_id: Its queue.
            messages: In their order.
            topics: How the lite topics are afterwards.
            checkpoint: How far the queue was read then.
        """
        batch = self._batch()
        for one in messages:
            place = _PLACE.pack(queue_id, one.offset)
            batch.put(_key(_MESSAGE, parent, _name(one.lite), place), b"")
            batch.put(_key(_ORDER, parent, place), one.lite.encode())
        for known in topics:
            places = (_PLACE.pack(*end) for end in known.ends.items())
            value = b"".join((_TIME.pack(known.last_ms), *places))
            batch.put(_key(_TOPIC, parent, known.lite.encode()), value)
        self._note(batch, checkpoint, _source(parent, queue_id))
        self._write(batch)

    def topics(self, parent: str) -> list[Known]:
        """Every lite topic of a topic."""
        found = []
        front = _key(_TOPIC, parent)
        for key, value in self._from(front, front):
            ends = dict(_PLACE.iter_unpack(value[_TIME.size :]))
            (last_ms,) = _TIME.unpack_from(value)
            found.append(Known(key[len(front) :].decode(), last_ms, ends))
        return found

    def offsets(
        self, parent: str, lite: str, queue_id: int, start: int, max_count: int
    ) -> list[int]:
        """The next messages of a lite topic in a queue, from an offset on."""
        front = _key(_MESSAGE, parent, _name(lite), _QUEUE.pack(queue_id))
        found = []
        for key, _ in self._from(front + _TIME.pack(start), front):
            found.append(_TIME.unpack_from(key, len(front))[0])
            if len(found) == max_count:
                break
        return found

    def back_from(
        self, parent: str, lite: str, queue_id: int, offset: int, count: int
    ) -> int:
        """Where a lite topic's last so many messages before an offset begin."""
        front = _key(_MESSAGE, parent, _name(lite), _QUEUE.pack(queue_id))
        start = front + _TIME.pack(max(offset - 1, 0))
        for key in islice(self._keys_back(start, front), count):
            found: int = _TIME.unpack_from(key, len(front))[0]
            if found >= offset:
                break
            offset = found
        return offset

    def cut(self, parent: str, queue_id: int, first: int, max_count: int) -> int:
        """Forget messages of a queue that are no more there, the oldest first.

        Args:
            parent: The topic.
            queue_id: Its queue.
            first: Its first message that is there.
            max_count: Forget no more than so many.

        Returns:
            How many were forgotten.
        """
        front = _key(_ORDER, parent, _QUEUE.pack(queue_id))
        batch = self._batch()
        count = 0
        for key, lite in self._from(front, front):
            place = key[-_PLACE.size :]
            if count == max_count or _PLACE.unpack(place)[1] >= first:
                break
            batch.delete(key)
            batch.delete(_key(_MESSAGE, parent, lite, b"\x00", place))
            count += 1
        if count:
            self._write(batch)
        return count

    def drop(self, parent: str, lites: Sequence[str]) -> None:
        """Forget lite topics; what is left of them goes with `cut`."""
        batch = self._batch()
        for lite in lites:
            batch.delete(_key(_TOPIC, parent, lite.encode()))
            front = _key(_MESSAGE, parent, lite.encode())
            batch.delete_range(front + b"\x00", front + b"\x01")
        self._write(batch)

    def forget(self, parent: str) -> None:
        """Forget all lite topics of a topic."""
        batch = self._batch()
        for kind in (_MESSAGE, _ORDER, _TOPIC, CHECKPOINT):
            front = kind + parent.encode()
            batch.delete_range(front + b"\x00", front + b"\x01")
        self._write(batch)
