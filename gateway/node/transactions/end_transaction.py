"""How a transaction is ended: committed or rolled back, once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ropeway.gateway.node.transactions import records
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.wire import properties
from ropeway.storage.api import LogError, NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.delays import Delays
    from ropeway.gateway.node.topics import Topics
    from ropeway.gateway.node.transactions.half_message import Half
    from ropeway.gateway.node.transactions.open_transactions import OpenTransactions
    from ropeway.gateway.node.transactions.writer import EndsWriter

    Done = Callable[[LogError | None], None]


class TransactionError(Exception):
    """A transaction cannot be ended so; the text says why."""


class Ending:
    """Ends transactions.

    A message is committed before its end is written down. A kill in between has its
    producer asked again, and the message may come twice; it is never lost.
    """

    def __init__(
        self,
        book: OpenTransactions,
        writer: EndsWriter,
        topics: Topics,
        delays: Delays,
        now_ms: Callable[[], int],
    ) -> None:
        self._book = book
        self._writer = writer
        self._topics = topics
        self._delays = delays
        self._now_ms = now_ms

    def end(
        self,
        half: Half,
        how: End,
        named_id: int,
        done: Done,
    ) -> bool:
        """Commit a half message, or roll it back; once.

        Args:
            half: What was found.
            how: COMMITTED or ROLLED_BACK.
            named_id: The id by which the producer knows it.
            done: Called once, at once or later, with what came of it.

        Returns:
            False where it had ended so before; then `done` is not called.

        Raises:
            TransactionError: It has ended otherwise, or is just being ended.
            NoSuchPartitionError: Its topic was deleted.
            BadTimeError: As in `Delays.divert`.
            LogError: As in `Partition.append`.
        """
        origin = half.origin
        before = self._book.ended(origin)
        if before is how:
            return False
        if before is not None:
            raise TransactionError(
                f"transaction {half.unique_key} was {before.value} before"
            )
        if self._book.current(origin) is None:
            raise TransactionError(
                f"Find prepared transaction message failed: transaction "
                f"{half.unique_key} has ended"
            )
        if origin in self._book.ending:
            raise TransactionError(
                f"transaction {half.unique_key} is just being ended; try again"
            )
        if how is End.ROLLED_BACK:
            self._writer.add(origin, how)
            done(None)
        else:
            self._commit(half, named_id, done)
        return True

    def _commit(self, half: Half, named_id: int, done: Done) -> None:
        topic = self._topics.get(half.topic)
        if topic is None or not topic.partitions:
            raise NoSuchPartitionError(
                f"topic[{half.topic}] of transaction {half.unique_key} was deleted"
            )
        queue_id = topic.queue_at(half.queue_id)
        text = None
        store_ms = self._now_ms()
        if half.is_delayed:
            pairs = records.committed_pairs(half)
            place = self._delays.divert(
                topic, queue_id, pairs, properties.dump(pairs), store_ms
            )
            topic, queue_id, text = place.topic, place.queue_id, place.text
        record = records.committed(half, topic, queue_id, store_ms, named_id, text)
        committed = partial(self._committed, half.origin, done)
        topic.partitions[queue_id].append([record], store_ms, committed)
        self._book.ending.add(half.origin)

    def _committed(
        self,
        origin: int,
        done: Done,
        _offset: int,
        error: LogError | None,
    ) -> None:
        if error is None:
            self._writer.add(origin, End.COMMITTED)
        else:
            self._book.ending.discard(origin)
        done(error)
