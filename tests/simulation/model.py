"""What has to hold: the reference model, and the checks against it.

It knows what clients asked for, what they were answered, and what they were shown; at
the end it is given what the queues have. It knows nothing of how Ropeway works, but for
what its documentation promises after a kill and after a power loss.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from ropeway.gateway.node import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.lateness import Waiting
    from tests.simulation.world import Trace

ASYNC_LOSS_S = 6.0
"""With `flush = async`: what a power loss may take, and the time that a slow disk and a
node that stands still add to half a second."""
TRANSIT_S = 5.0
"""How long afterwards clients may still hear what was said before."""
IN_FLIGHT_S = 14.0
"""A kill may give out again what was popped so shortly before: `pop.stay_ms`, the
second in which offsets are written, and what a slow disk and a frozen node add."""
MOST_VIOLATIONS = 20


class Place(NamedTuple):
    """Where a message is."""

    topic: str
    queue_id: int
    offset: int


class Sent:
    """A message that a client sent."""

    def __init__(self, topic: str, at_s: float, order: str | None) -> None:
        self.topic = topic
        self.at_s = at_s
        self.order = order
        """Messages of the same order are stored in the order of sending."""
        self.tries = 1
        self.place: Place | None = None
        """What was answered; None where it was not, or by an error."""
        self.acked_s = 0.0
        self.due_s: float | None = None
        """Not to be seen before, by the loop's time."""
        self.must = False
        """Whether it has to be there in the end, wherever that is."""
        self.never = False
        """Whether it must not be seen: its transaction was rolled back."""
        self.is_deal = False
        """Whether it was committed by a transaction."""
        self.is_batch: bytes = b""
        """The first body of its batch: all of it is stored, or nothing."""


class Popped(NamedTuple):
    """A message in a consumer's hand."""

    asked_s: float
    invisible_s: float
    acked_s: float


class Handed(NamedTuple):
    """A message that was not acknowledged until it was handed out again."""

    body: bytes
    visible_s: float
    again_s: float


class Model:
    """One run's.

    Args:
        trace: What violations are noted in.
        clock: The loop's time.
    """

    def __init__(self, trace: Trace, clock: Callable[[], float]) -> None:
        self._trace = trace
        self._clock = clock
        self.violations: list[str] = []
        self.sent: dict[bytes, Sent] = {}
        self.seen: dict[Place, tuple[bytes, float]] = {}
        self.handled: defaultdict[str, set[bytes]] = defaultdict(set)
        """By group: bodies that its handlers have taken."""
        self.popping: dict[tuple[str, str], None] = {}
        """Groups that pop, and what."""
        self._popped: dict[tuple[str, bytes], Popped] = {}
        self._lives: defaultdict[tuple[str, bytes], int] = defaultdict(int)
        """How often a message may come again although it should not: by kills."""
        self._copies: defaultdict[tuple[str, bytes], int] = defaultdict(lambda: 1)
        """How many of a popped message there may be: by kills, likewise."""
        self._lossy: list[float] = []
        """When a power loss took what was not synced, and was allowed to."""
        self.waiting: list[Waiting] = []
        """What was acknowledged and is to come at its time."""
        self.undecided: list[Waiting] = []
        """Half messages that nobody decides: they are given up in the end."""
        self.handed: list[Handed] = []
        """What was handed out, not acknowledged, and handed out again."""
        self._open: dict[tuple[str, bytes], float] = {}
        """Until when what is in hand is not visible, if it is not acknowledged."""
        self.kills: list[float] = []
        """When a process ended without being asked, by a kill or a power loss, or
        could not know how something had ended."""
        self.set_boots: list[float] = []
        """When a process began whose time of day is another than the last one's: what
        was written down with a time is due by the clock as it is now."""
        self.queues: dict[tuple[str, str], int] = {}
        """By topic and broker: how many queues were acknowledged."""
        self.clocks: list[float] = []
        """When a node's time of day was set."""
        self.spread_s: Callable[[int, float, float], float] = lambda *_: 0.0
        """How far apart the times of day of a broker's nodes were between two times;
        what a queue's number says."""
        self.trimmed_s = -math.inf
        """What was sent before may be deleted, from a queue's beginning on."""

    def wrong(self, what: str) -> None:
        """Note that something should not be as it is."""
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(what)
        self._trace.note("CHECK", what)

    # -- sends

    def sending(self, body: bytes, topic: str, order: str | None = None) -> Sent:
        """A client begins to send a message of which there is one only."""
        made = self.sent[body] = Sent(topic, self._clock(), order)
        return made

    def acknowledged(self, body: bytes, queue_id: int, offset: int) -> None:
        """It was answered that a message is stored."""
        sent = self.sent[body]
        sent.place = Place(sent.topic, queue_id, offset)
        sent.acked_s = self._clock()
        self._trace.note("stored", f"{short(body)} at {sent.place}")
        self._same(sent.place, body, "was acknowledged")

    def saw(self, topic: str, queue_id: int, offset: int, body: bytes) -> None:
        """A client was given a message of a queue."""
        place = Place(topic, queue_id, offset)
        sent = self.sent.get(body)
        if sent is None:
            self.wrong(f"content: {place} has {short(body)}, which nobody sent")
            return
        if sent.topic != topic:
            self.wrong(f"content: {short(body)} of {sent.topic} is in {place}")
        if sent.never:
            self.wrong(f"transaction: {short(body)} was rolled back and is in {place}")
        early_s = (sent.due_s or 0.0) - self._clock()
        if early_s > 0 and early_s > self.spread_s(queue_id, sent.at_s, self._clock()):
            self.wrong(f"time: {short(body)} came {early_s:.3f} s early")
        self._same(place, body, "was seen")

    def _same(self, place: Place, body: bytes, how: str) -> None:
        known, at_s = self.seen.setdefault(place, (body, self._clock()))
        if known != body and self.is_unsure(at_s):
            self.seen[place] = body, self._clock()
        elif known != body:
            self.wrong(
                f"content: {short(body)} {how} at {place}, and before {short(known)}"
            )

    def promised(self, body: bytes) -> None:
        """It was answered that a message will be seen, later or elsewhere."""
        sent = self.sent[body]
        sent.must = True
        sent.acked_s = self._clock()

    # -- pops

    def popped(
        self, group: str, body: bytes, asked_s: float, invisible_s: float
    ) -> None:
        """A client was handed a message out, for a time."""
        key = group, body
        self._trace.note("popped", short(body))
        before = self._popped.get(key)
        now = self._clock()
        if (visible_s := self._open.get(key)) is not None:
            self.handed.append(Handed(body, visible_s, now))
        self._open[key] = now + invisible_s
        self._lives[key] += sum(asked_s <= at <= now for at in self.kills)
        if body not in self.sent:
            self.wrong(f"content: {short(body)} was popped, and nobody sent it")
        if before is not None and not before.acked_s and self._copies[key] > 1:
            # This may be the other copy; that one still comes when its time is over.
            self._lives[key] += 1
        if before is not None and before.acked_s:
            # Who hears late what it is handed acknowledges what others have by then.
            if before.acked_s < before.asked_s + before.invisible_s:
                self._again(key, "was acknowledged and comes again")
        elif (
            before is not None
            and now < before.asked_s + before.invisible_s
            and not any(at >= before.asked_s for at in self.set_boots)
        ):
            early_s = before.asked_s + before.invisible_s - now
            self._again(key, f"comes {early_s:.3f} s before it may")
        self._popped[key] = Popped(asked_s, invisible_s, 0.0)

    def _again(self, key: tuple[str, bytes], how: str) -> None:
        """A message comes again that should not, if no kill explains it."""
        if self._lives[key]:
            self._lives[key] -= 1
        else:
            self.wrong(f"pop: {short(key[1])} {how}")

    def pop_acknowledging(self, group: str, body: bytes) -> None:
        """A client says that a message is done; whether it is heard is not known."""
        self.handled[group].add(body)
        self._open.pop((group, body), None)

    def pop_acknowledged(self, group: str, body: bytes) -> None:
        """It was answered that a message is done."""
        key = group, body
        self._trace.note("done", short(body))
        self._popped[key] = self._popped[key]._replace(acked_s=self._clock())

    # -- topics that are made

    def made(self, topic: str, broker: str, count: int) -> None:
        """It was answered that a topic has so many queues on a broker."""
        self._trace.note("made", f"{topic} on {broker}: {count}")
        key = topic, broker
        self.queues[key] = max(count, self.queues.get(key, 0))

    def queues_of(self, topic: str, broker: str) -> int:
        """How many queues a topic has on a broker, as far as was answered."""
        return self.queues.get((topic, broker), 0)

    # -- faults

    def killed(self) -> None:
        """A process ended: what was in hand is given out again, once for each kill."""
        now = self._clock()
        self.kills.append(now)
        young = [
            key
            for key, last in self._popped.items()
            if max(last.asked_s, last.acked_s) > now - IN_FLIGHT_S
        ]
        # Those, too, that were handed out, perhaps, in an answer that was lost.
        young += [
            (group, body)
            for group, topic in self.popping
            for body, sent in self.sent.items()
            if sent.topic == topic and sent.at_s > now - IN_FLIGHT_S
            if (group, body) not in self._popped
        ]
        for key in young:
            # What went to the ledger and was not passed yet is there twice now: it is
            # given out again at once, and again when its time is over.
            self._lives[key] += 2 * self._copies[key]
            self._copies[key] *= 2

    def unsure(self, partition: str) -> None:
        """Pulsar did not say what it stored: who tries again may store it twice.

        What was popped and went to the ledger, or back, is there twice then.
        """
        now = self._clock()
        self.kills.append(now)
        if names.POP_TOPIC in partition or names.RETRY_PREFIX in unquote(partition):
            for key, last in self._popped.items():
                if max(last.asked_s, last.acked_s) > now - IN_FLIGHT_S:
                    self._lives[key] += 1
                    self._copies[key] += 1

    def lost_power(self, *, is_sync: bool) -> None:
        """A machine lost its power: with `async`, what is new may be gone."""
        self.killed()
        if is_sync:
            return
        self._lossy.append(self._clock())

    def is_unsure(self, at_s: float) -> bool:
        """Whether what was said at a time may have been taken by a power loss."""
        return any(one - ASYNC_LOSS_S <= at_s <= one + TRANSIT_S for one in self._lossy)

    # -- the end

    def check_queue(
        self, topic: str, queue_id: int, first: int, found: list[tuple[int, bytes]]
    ) -> None:
        """Hold what a queue has against all that was said of it."""
        offsets = [offset for offset, _ in found]
        if offsets != [*range(first, first + len(found))]:
            self.wrong(f"dense: {topic}/{queue_id} has offsets {_runs(offsets)}")
        there = dict(found)
        for offset, body in found:
            self.saw(topic, queue_id, offset, body)
        for place, (body, at_s) in self.seen.items():
            if self.is_unsure(at_s):
                continue
            if place.offset < first and self._may_be_deleted(body):
                continue
            if place[:2] == (topic, queue_id) and place.offset not in there:
                self.wrong(f"durable: {short(body)} was at {place}, and is gone")

    def _may_be_deleted(self, body: bytes) -> bool:
        return body in self.sent and self.sent[body].at_s < self.trimmed_s

    def check_all(
        self,
        stored: dict[str, dict[int, list[tuple[int, bytes]]]],
        firsts: dict[tuple[str, int], int],
    ) -> None:
        """Hold what queues have, from their first offsets on, against what was said."""
        where: defaultdict[bytes, list[Place]] = defaultdict(list)
        for topic, queues in stored.items():
            for queue_id, found in queues.items():
                for offset, body in found:
                    where[body].append(Place(topic, queue_id, offset))
        last: dict[tuple[str, int], tuple[int, bytes]] = {}
        for body, sent in self.sent.items():
            places = where[body]
            sure = not self.is_unsure(sent.acked_s)
            is_kept = sent.place is None or not (
                self._may_be_deleted(body)
                and sent.place.offset < firsts[sent.place.topic, sent.place.queue_id]
            )
            if sure and is_kept and sent.place not in [None, *places]:
                self.wrong(
                    f"durable: {short(body)} was acknowledged at {sent.place}; gone"
                )
            if sure and sent.must and not places:
                self.wrong(f"durable: {short(body)} was promised, and never came")
            # What is stored again after a kill was stored before it was noted.
            most = sent.tries
            if sent.due_s is not None or sent.is_deal:
                most += sum(at >= sent.at_s for at in self.kills)
            if len(places) > most:
                self.wrong(
                    f"once: {short(body)} is there {len(places)} times: {places}"
                )
            if sent.order is not None and sent.place is not None:
                key = sent.order, sent.place.queue_id
                if not sure:
                    last.pop(key, None)
                    continue
                before = last.get(key)
                if before is not None and before[0] >= sent.place.offset:
                    self.wrong(f"order: {short(body)} is before {short(before[1])}")
                last[key] = sent.place.offset, body
        self._check_batches(where)

    def _check_batches(self, where: dict[bytes, list[Place]]) -> None:
        batches: defaultdict[bytes, list[int]] = defaultdict(list)
        for body, sent in self.sent.items():
            if sent.is_batch and not self._may_be_deleted(sent.is_batch):
                batches[sent.is_batch].append(len(where[body]))
        for first, counts in batches.items():
            if len(set(counts)) > 1:
                self.wrong(
                    f"batch: of {short(first)} and those with it there are {counts}"
                )

    def missing(self, group: str, topic: str, stored: set[bytes]) -> list[bytes]:
        """What a group has not had of all that its topic has.

        Who has read what a power loss took goes on behind it, and misses what takes its
        place: as with RocketMQ, that is what `flush = async` risks.
        """
        if self._lossy:
            return []
        return [
            body
            for body in stored - self.handled[group]
            if body in self.sent and self.sent[body].topic == topic
        ]


def short(body: bytes) -> str:
    """A body without what makes it long."""
    return body.rstrip(b".").decode(errors="backslashreplace")[:40]


def _runs(offsets: list[int]) -> str:
    """Offsets, those in a row put together."""
    runs: list[list[int]] = []
    for one in offsets:
        if runs and one == runs[-1][1] + 1:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    return ", ".join(f"{first}-{last}" for first, last in runs[:8])
