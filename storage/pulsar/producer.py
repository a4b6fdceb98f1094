"""A producer: the same object over any number of connections, its order kept.

Law: an entry is done when a broker acknowledged it, and never before. What is not
acknowledged when a connection ends is sent again, in order, on the next one; the
broker's deduplication drops what it has. A producer that was fenced sends nothing more.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from ropeway.storage.pulsar.backoff import Reopener
from ropeway.storage.pulsar.commands import (
    Access,
    OpenProducer,
    ProducerSuccess,
    SendReceipt,
)
from ropeway.storage.pulsar.connection import TopicLookup
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.errors import (
    RETRYABLE,
    FencedError,
    PulsarError,
    PulsarUnavailableError,
    TopicNotFoundError,
    WireError,
)
from ropeway.storage.pulsar.frames import Buffer
from ropeway.storage.pulsar.send_entry import (
    Done,
    EntryMetadata,
    Pending,
    ProducerSlot,
    encode_metadata,
    metadata_head,
    size_of,
)

LET_IN_AND_OUT = 3
"""A broker that closes a producer so often stores nothing: a lost connection, or a
topic that moves, does it once."""


def anybody() -> None:
    """Let a producer be opened whoever we are."""


class Producer:
    """Appends entries to one topic; made by `PulsarClient.producer`."""

    def __init__(
        self,
        client: TopicLookup,
        topic: str,
        name: str,
        access: Access,
        lost: Callable[[PulsarError], None],
        permit: Callable[[], None],
    ) -> None:
        self.last_sequence_id = -1
        """The highest that the broker knew of this name when we opened; -1: none."""
        self.topic_epoch: int | None = None
        """Grows with each producer that takes the topic for itself."""
        self.pending_bytes = 0
        """The payloads of all entries that are not acknowledged."""
        self.max_message_bytes = 0
        """The largest payload with its metadata that the broker takes."""
        self._client = client
        self._topic = topic
        self._name = name
        self._metadata_head = metadata_head(name)
        self._access = access
        self._is_alone = access is not Access.SHARED
        self._lost = lost
        self._permit = permit
        self._pending: deque[Pending] = deque()
        self._highest_sent = self._highest_stored = -1
        self._known = -1
        """The highest that the broker knew when we opened last."""
        self._was_open = False
        self._closings = 0
        """How often it was open and lost its place since an entry was stored."""
        self._sent = self._stored = 0
        """How many entries `send` took, and how many of them are acknowledged."""
        self._place: ProducerSlot | None = None
        self._error: PulsarError | None = None
        """Why nothing is sent any more."""
        self._watchers: list[asyncio.Future[None]] = []
        self._reopener = Reopener(self._open_once, self._lose)

    @property
    def pending(self) -> int:
        """How many entries are not acknowledged."""
        return len(self._pending)

    async def open(self) -> None:
        """Open for the first time; `PulsarClient.producer` calls it."""
        await self._reopener.first(self._client.request_timeout_s)

    @property
    def is_shut_out(self) -> bool:
        """Whether its broker lets it in and closes it again, and stores nothing."""
        return self._closings >= LET_IN_AND_OUT

    @property
    def silence(self) -> str:
        """What is known of why nothing was acknowledged, for messages to people."""
        if not self.is_shut_out:
            return "Pulsar did not answer in time"
        return (
            f"Pulsar closed the producer {self._closings} times and stored nothing; "
            "its bookies may be too few, or their disks full"
        )

    def send(
        self,
        payload: Sequence[Buffer],
        sequence_id: int,
        done: Done,
        said: EntryMetadata,
        *,
        num_messages: int = 1,
    ) -> None:
        """Append an entry; never blocks, and never calls `done` before it returns.

        Args:
            payload: the parts of the payload; they may not change until it is done.
            sequence_id: larger than that of all entries before, also of those that
                an earlier producer of this name sent: a broker drops repeats.
            done: called with where the entry is stored; with (None, None) when an
                earlier try of ours stored it, so that the place is not known; or with
                (None, error) when it will not be sent again: whether it is stored is
                then not known.
            said: what readers are told of it.
            num_messages: by how much the topic's index grows, unless it is a batch.

        Raises:
            ValueError: the sequence id is not larger, or the entry is too long;
                nothing is sent.
        """
        if sequence_id <= self._highest_sent:
            raise ValueError(
                f"sequence id {sequence_id}; allowed: from {self._highest_sent + 1}"
            )
        metadata = encode_metadata(self._metadata_head, sequence_id, said)
        payload_bytes = size_of(payload)
        if len(metadata) + payload_bytes > self.max_message_bytes:
            raise ValueError(
                f"entry of {len(metadata)} + {payload_bytes} bytes;"
                f" allowed: {self.max_message_bytes}"
            )
        if self._error is not None:
            asyncio.get_running_loop().call_soon(done, None, self._error)
            return
        self._highest_sent = sequence_id
        self._sent += 1
        one = Pending(
            *(sequence_id, said.batch or num_messages, metadata),
            *(payload, payload_bytes, done),
        )
        self._pending.append(one)
        self.pending_bytes += payload_bytes
        if self._place is not None:
            self._place.write(one)

    async def confirm(self) -> None:
        """Return when the broker has shown that this producer was not fenced before.

        A broker does not tell a producer that it is fenced. So this waits for the
        acknowledgement of an entry that was sent after the call; or, where nothing is
        on its way, opens the producer a second time: the broker has it, or compares
        its epoch with the topic's.

        Raises:
            FencedError: another producer has the topic.
            PulsarUnavailableError: nothing is known in time.
            PulsarError: the producer is lost for another reason, or closed.
        """
        sent_before = self._sent
        try:
            async with asyncio.timeout(self._client.request_timeout_s):
                while self._stored <= sent_before:
                    if self._error is not None:
                        raise self._error
                    if self._place is None or self._pending:
                        await self._change()
                    elif await self._probe(self._place):
                        return
        except TimeoutError:
            raise PulsarUnavailableError(
                f"{self._topic}: not confirmed in {self._client.request_timeout_s} s"
            ) from None

    async def close(self) -> None:
        """Close; entries that are not acknowledged by then end in an error."""
        if self._error is None:
            place, self._place = self._place, None
            if place is not None:
                await place.leave()
            self._end(PulsarUnavailableError(f"{self._topic}: the producer was closed"))
        await self._reopener.stop()
        self._client.forget(self)

    async def _open_once(self) -> None:
        timeout_s = self._client.request_timeout_s
        connection = await self._client.broker_of(self._topic)
        place = ProducerSlot(connection, self._receipt, self._left)
        if not self._was_open:
            # Later, its epoch tells the broker whether another one came meanwhile.
            self._permit()
        try:
            answer = await connection.request(
                self._opening(place), ProducerSuccess, timeout_s
            )
            self._check(answer)
        except BaseException:
            place.abandon()
            raise
        if place.is_closed:
            raise PulsarUnavailableError(f"{self._topic}: closed while it was opened")
        if not self._was_open:
            self._was_open = True
            self.last_sequence_id = answer.last_sequence_id
            self._highest_sent = self._highest_stored = answer.last_sequence_id
        self._known = answer.last_sequence_id
        self.topic_epoch = answer.topic_epoch
        self.max_message_bytes = connection.max_message_bytes
        self._place = place
        for one in self._pending:
            place.write(one)
        self._changed()

    def _opening(self, place: ProducerSlot) -> Callable[[int], OpenProducer]:
        return lambda request_id: OpenProducer(
            self._topic,
            place.producer_id,
            request_id,
            producer_name=self._name,
            access=self._access,
            topic_epoch=self.topic_epoch,
        )

    def _check(self, answer: ProducerSuccess) -> None:
        """See that the topic has what it acknowledged, and nobody else's entries.

        A broker can let an old producer in again while it notes the epoch of a new one
        (`AbstractTopic.handleTopicEpochForExclusiveProducer`, 4.0.8): epochs alone do
        not tell which is which.
        """
        known = answer.last_sequence_id
        if not (self._is_alone and self._was_open):
            return
        if known < self._highest_stored:
            raise TopicNotFoundError(
                f"{self._topic} knows sequence id {known} as the last of {self._name},"
                f" and acknowledged {self._highest_stored}: it was deleted and made"
                " again, or deduplication is off"
            )
        if known > self._highest_sent:
            raise self._foreign(known)

    def _foreign(self, sequence_id: int) -> FencedError:
        return FencedError(
            f"{self._topic} has sequence id {sequence_id} of another {self._name}"
        )

    async def _probe(self, place: ProducerSlot) -> bool:
        try:
            answer = await place.connection.request(
                self._opening(place), ProducerSuccess, self._client.request_timeout_s
            )
            if answer.topic_epoch is not None:
                # We had been put out, and are in again: others may have written.
                self._check(answer)
        except RETRYABLE as error:
            place.closed(error)
            raise PulsarUnavailableError(f"{self._topic}: {error}") from error
        except PulsarError as error:
            self._lose(error)
            raise
        return self._place is place

    def _receipt(self, place: ProducerSlot, receipt: SendReceipt) -> None:
        head = self._pending[0] if self._pending else None
        if head is None or receipt.sequence_id < head.sequence_id:
            return
        if receipt.sequence_id > head.sequence_id:
            # Never seen; sending all again makes good what it may mean.
            place.connection.abort(
                WireError(
                    f"a receipt for {receipt.sequence_id};"
                    f" allowed: {head.sequence_id}, the first that is pending"
                )
            )
            return
        where = receipt.message_id
        is_repeat = where is None or where.ledger < 0
        if is_repeat and head.sequence_id > self._known and self._is_alone:
            # We sent it for the first time: what the broker has is not ours.
            self._lose(self._foreign(head.sequence_id))
            return
        self._pending.popleft()
        self.pending_bytes -= head.payload_bytes
        self._stored += 1
        self._closings = 0
        self._highest_stored = head.sequence_id
        if self._watchers:
            self._changed()
        if where is None or is_repeat:
            head.done(None, None)
        else:
            head.done(Position(where.ledger, where.entry), None)

    def _left(self, place: ProducerSlot, error: PulsarError) -> None:
        """Open again elsewhere, or end: `place` does not take entries any more."""
        if self._place is place:
            self._place = None
            self._closings += 1
            if isinstance(error, (*RETRYABLE, WireError)):
                self._reopener.again()
            else:
                self._lose(error)

    def _lose(self, error: PulsarError) -> None:
        if self._error is None:
            if self._place is not None:
                self._place.abandon()
            self._end(error)
            self._lost(error)

    def _end(self, error: PulsarError) -> None:
        self._error, self._place = error, None
        pending, self._pending = self._pending, deque()
        self.pending_bytes = 0
        self._changed()
        for one in pending:
            one.done(None, error)

    async def _change(self) -> None:
        watcher = asyncio.get_running_loop().create_future()
        self._watchers.append(watcher)
        await watcher

    def _changed(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)
