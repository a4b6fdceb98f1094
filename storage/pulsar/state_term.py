"""One node's time as the leader of a state: its producer, its puts and its lease.

Law: all nodes use one producer name. While two producers open at the same moment,
`ExclusiveWithFencing` lets both in, with one epoch; only a name is never given twice.
Source: AbstractTopic.addProducer, Pulsar 4.0.8.

Law: sequence ids begin anew above those of all earlier terms, and all that begin one
term begin it with the same id. So it is stored for one of them only, and once it is,
Pulsar drops what an older term sends as a repeat. Epochs cannot tell terms apart: a
broker that notes two at the same moment may give one out twice, and go back.

Law: the lease counts from the moment at which the broker was asked, not answered. At
some time after that moment the broker still had this producer; whoever fences it later
waits for a whole lease before leading.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from typing import TYPE_CHECKING

import msgspec

from ropeway.common.clock import now_ms
from ropeway.storage.pulsar.errors import PulsarError, PulsarUnavailableError
from ropeway.storage.pulsar.send_entry import EntryMetadata
from ropeway.storage.pulsar.state_entry import (
    LEADER,
    PROPERTY,
    TERM,
    VERSION,
    Change,
    Changes,
    Leader,
    encode,
    encode_leader,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.pulsar.client import PulsarClient
    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.producer import Producer

KEYS_AT_ONCE = 1000
"""What is encoded in a millisecond or two, in which nothing else runs."""
PRODUCER_NAME = "ropeway-state"
TERM_SHIFT = 32
"""A term may write so many entries, 2 to that power, and half as many may lead."""
CONFIRMATIONS = 3
"""A lease is confirmed so often: it holds also when one answer is late."""


class Term:
    """Writes to a topic from `open` on, until another node does or `close`.

    Args:
        client: the cluster's.
        topic: its full name.
        node: who we are.
        lease_s: for how long a confirmation holds.
        interval_s: how long a put may wait for `flush`.
        lost: called once when nothing can be written any more; not after `close`.
    """

    def __init__(
        self,
        client: PulsarClient,
        topic: str,
        node: str,
        lease_s: float,
        interval_s: float,
        lost: Callable[[PulsarError], None],
    ) -> None:
        self.id = uuid.uuid4().hex
        self.begins_at: int | None = None
        """The sequence id of our first entry, which says that we lead."""
        self.held_until_s = 0.0
        self.fenced_s = 0.0
        """When no other node could write any more."""
        self.ahead: dict[str, Change] = {}
        """What was put and has not been read back from the topic."""
        self._client = client
        self._topic = topic
        self._leader = Leader(node, self.id, lease_s)
        self._interval_s = interval_s
        self._lost = lost
        self._producer: Producer | None = None
        self._dirty: dict[str, Change] = {}
        self._sequence_id = -1
        self._flights: dict[int, Changes] = {}
        """By sequence id, what was sent and has not been read back."""
        self._sent_in: dict[str, int] = {}
        """The last of those that changes a key."""
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._error: PulsarError | None = None

    async def open(self, newest_sequence_id: int) -> None:
        """Fence whoever leads, and read on until all that it wrote is here.

        Args:
            newest_sequence_id: the highest in the topic that is known; a broker forgets
                those of a producer that was away for hours.

        Raises:
            PulsarError: refused, or another node was faster.
        """
        asked_s = time.monotonic()
        self._producer = await self._client.producer(
            self._topic, PRODUCER_NAME, lost=self.end
        )
        self.held_until_s = asked_s + self._leader.lease_s
        self._keeper = asyncio.ensure_future(self._keep())
        newest = max(newest_sequence_id, self._producer.last_sequence_id)
        self.begins_at = ((newest >> TERM_SHIFT) + 1) << TERM_SHIFT
        self._sequence_id = self.begins_at - 1
        self.repeat()
        await self.flush()
        self.fenced_s = time.monotonic()

    def put(self, key: str, change: Change) -> None:
        """Change a key; in memory at once, on its way within the interval."""
        self.ahead[key] = self._dirty[key] = change
        if self._timer is None:
            self._schedule()

    def landed(self, entry: Entry) -> dict[str, Change]:
        """What an entry of ours changes, as it is read back."""
        landed: dict[str, Change] = {}
        # Compaction may have left out entries before it.
        for number in [one for one in self._flights if one <= entry.sequence_id]:
            landed |= self._flights.pop(number)
        for key in landed:
            if self._sent_in.get(key, -1) <= entry.sequence_id:
                self._sent_in.pop(key, None)
                if key not in self._dirty:
                    self.ahead.pop(key, None)
        while self._waiters and self._waiters[0][0] <= entry.sequence_id:
            _, waiter = self._waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
        return landed

    async def flush(self) -> None:
        """Return when all that was put is stored and was read back.

        Raises:
            PulsarError: that is not so in time, or can never be.
        """
        while self._dirty and self._error is None:
            self._send()
            await asyncio.sleep(0)
        self.check()
        if not self._flights:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((self._sequence_id, waiter))
        try:
            async with asyncio.timeout(self._client.request_timeout_s):
                await waiter
        except TimeoutError:
            raise PulsarUnavailableError(
                f"not stored in {self._client.request_timeout_s} s"
            ) from None

    def check(self) -> None:
        """See that nothing has ended it.

        Raises:
            PulsarError: something has.
        """
        if self._error is not None:
            raise self._error

    async def give_up(self) -> None:
        """Flush, and say that nobody needs to wait for our lease; then `close`.

        Raises:
            PulsarError: not all could be stored.
        """
        await self._stop_keeping()
        self._leader = msgspec.structs.replace(self._leader, ended=True)
        self.repeat()
        await self.flush()

    async def close(self) -> None:
        """Write no more; what is on its way may or may not be stored."""
        await self._stop_keeping()
        self._lost = _nobody
        self.end(PulsarUnavailableError("this node leads no more"))
        if self._producer is not None:
            await self._producer.close()

    def end(self, error: PulsarError) -> None:
        """Stop at once, for nothing that is written counts any more."""
        if self._error is not None:
            return
        self._error = error
        self.held_until_s = 0.0
        if self._timer is not None:
            self._timer.cancel()
        waiters, self._waiters = self._waiters, []
        for _, waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self._lost(error)

    def repeat(self) -> None:
        """Write with the next entry who leads: so no compaction leaves that out."""
        self._dirty[LEADER] = encode_leader(self._leader)

    def _send(self) -> None:
        """Send a part of what was put, small enough for the loop not to notice."""
        if self._producer is None or self._error is not None:
            return
        keys = list(itertools.islice(self._dirty, KEYS_AT_ONCE))
        dirty = {key: self._dirty.pop(key) for key in keys}
        for changes, payload in encode(dirty):
            self._sequence_id += 1
            self._flights[self._sequence_id] = changes
            self._sent_in |= dict.fromkeys(changes, self._sequence_id)
            self._producer.send(
                [payload],
                self._sequence_id,
                _acknowledged,
                EntryMetadata(
                    now_ms(),
                    properties=[(PROPERTY, VERSION), (TERM, self.id)],
                    batch=len(changes),
                ),
            )

    def _tick(self) -> None:
        self._timer = None
        if self._error is not None:
            return
        if self._flights:
            # Pulsar is slow: the next entries will hold all that comes meanwhile.
            self._schedule()
        else:
            self._send_on()

    def _send_on(self) -> None:
        self._send()
        if self._dirty and self._error is None:
            asyncio.get_running_loop().call_soon(self._send_on)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_s, self._tick)

    async def _keep(self) -> None:
        assert self._producer is not None
        while self._error is None:
            asked_s = time.monotonic()
            try:
                await self._producer.confirm()
            except PulsarUnavailableError:
                pass
            except PulsarError:
                return  # `end` is told.
            else:
                if self._error is not None:
                    return
                self.held_until_s = asked_s + self._leader.lease_s
            next_s = asked_s + self._leader.lease_s / CONFIRMATIONS
            await asyncio.sleep(max(0, next_s - time.monotonic()))

    async def _stop_keeping(self) -> None:
        self.held_until_s = 0.0
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])


def _acknowledged(_where: Position | None, _error: PulsarError | None) -> None:
    """What counts is that an entry is read back; an error comes to `end` as well."""


def _nobody(_error: PulsarError) -> None:
    """Nobody needs to know of an end that was wanted."""
