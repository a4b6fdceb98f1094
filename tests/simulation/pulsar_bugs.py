"""Seeded bugs of nodes on Pulsar; see `bugs`."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ropeway.gateway.node import pending_sends
from ropeway.gateway.node.leaderless_requests import LeaderlessRequests, Turn
from ropeway.gateway.node.leadership import Leadership
from ropeway.storage.pulsar import open_partition, state
from ropeway.storage.pulsar.appender import Appender
from ropeway.storage.pulsar.commands import MessageId
from ropeway.storage.pulsar.ownership import Ownership
from ropeway.storage.pulsar.producer import Producer
from ropeway.storage.pulsar.reader import Reader
from ropeway.storage.pulsar.state import PulsarState
from ropeway.storage.pulsar.state_term import Term
from tests.simulation.seeded import replaced, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.seeded import Bug


def answer_before_the_receipt(real: Any) -> Any:
    """Say that a pack is stored once it was sent."""

    def send(self: Any) -> None:
        real(self)
        flight = self._flights.pop()
        offset, silent = flight.base_offset, []
        for records, store_ms, done, size in flight.appends:
            if done is not None:
                done(offset, None)
            offset += len(records)
            silent.append((records, store_ms, None, size))
        self._flights.append(flight._replace(appends=silent))

    return send


def renumber_after_an_unknown_outcome(real: Any) -> Any:
    """Go on where what was not acknowledged began."""

    def answer_all(self: Any, reason: str) -> None:
        begin = self._flights[0].base_offset if self._flights else None
        real(self, reason)
        if begin is not None:
            self.next_offset = self._whole = self._next_base = begin

    return answer_all


def forget_the_newest(real: Any) -> Any:
    """Begin a partition that was taken over one offset too early."""

    def join(self: Any, partition: Any, opened: Any) -> None:
        early = max(opened.end - 1, opened.first)
        real(self, partition, opened._replace(end=early))

    return join


def skip_an_entry(real: Any) -> Any:
    """Go on one entry too far when a topic is read anew."""

    def first(self: Any) -> MessageId:
        found: MessageId = real(self)
        if self._after is None:
            return found
        return MessageId(found.ledger, found.entry + 1)

    return first


def stay_put_out(real: Any) -> Any:
    """Open a producer that lost its place not again, each fourth time."""
    count = 0

    def left(self: Any, place: Any, error: Any) -> None:
        nonlocal count
        count += 1
        if count % 4:
            real(self, place, error)
        elif self._place is place:
            self._place = None

    return left


def _long_lease(self: Any) -> float:
    """For how long a leader is sure that believes in its lease for three seconds."""
    return time.monotonic() + 3.0 if self._leading else 0.0


def lead_before_all_is_read(real: Any) -> Any:
    """Lead once the producer is open, and read on beside it."""

    async def open_(self: Any, newest_sequence_id: int) -> None:
        self.flush = partial(asyncio.sleep, 0)
        try:
            await real(self, newest_sequence_id)
        finally:
            del self.flush

    return open_


class NoTurns(LeaderlessRequests):
    """Those that wait until it is known who leads go on as they hear of it."""

    def take(self, client: str) -> Turn:
        """Wait behind nobody."""
        del client
        return Turn()

    def end(self, client: str, turn: Turn, go_on: Callable[[], None]) -> None:
        """Go on at once."""
        del client, turn
        go_on()


def lead_for_ever(real: Any) -> Any:
    """Be sure of leading without a proof."""
    del real
    return lambda _self: float("inf")


BUGS: dict[str, Bug] = {
    "answer before the receipt": wrapped(Appender, "_send", answer_before_the_receipt),
    "renumber after an unknown outcome": wrapped(
        Appender, "_answer_all", renumber_after_an_unknown_outcome
    ),
    "forget the newest entry": wrapped(Ownership, "_join", forget_the_newest),
    "skip an entry when reading anew": wrapped(Reader, "_first", skip_an_entry),
    "stay put out": wrapped(Producer, "_left", stay_put_out),
    "accept an old lease on Pulsar": replaced(
        PulsarState, "held_until_s", property(_long_lease)
    ),
    "overtake who waits for a leader": replaced(
        pending_sends, "LeaderlessRequests", NoTurns
    ),
    "lead without a proof": wrapped(Leadership, "_proven_until_s", lead_for_ever),
    "outwait no lease": replaced(state, "CLOCKS", 0.0),
    "take over without a proof": replaced(Ownership, "_permit", lambda _: None),
    "lead before all is read": wrapped(Term, "open", lead_before_all_is_read),
    "forget the term": replaced(open_partition, "term_of", lambda _sequence_id: -1),
}
"""By name."""
