"""What was sent to a partition and how it was answered, against what is read there.

Every try is a message of its own (`partition.number.attempt`), so that none can be
taken for another: one that was acknowledged is there once, at the offset that was
answered; one that was refused is not there; one whose outcome is unknown is there once
or not at all. Where a sender waits for each before the next, they are in that order.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from bisect import bisect_left
from contextlib import suppress
from typing import TYPE_CHECKING

from benchmarks.faults.calls import Caller, NotSentError, Router
from ropeway.gateway.wire import message_id
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN, REFUSED = -1, -2
MAYBE = {ResponseCode.SYSTEM_ERROR}
"""Answers that do not say that nothing was stored."""
TRY_S = 3.0
"""As RocketMQ's clients wait."""
PROBE_S = 1.0
PAUSE_S = 0.06
AGAIN_S = 0.02
PROBES = 6
PULL_S = 0.1


class Ledger:
    """One partition: what was tried, and what is there."""

    def __init__(
        self, topic: str, partition: int, report: Callable[[str], None]
    ) -> None:
        self.topic = topic
        self.partition = partition
        self._report = report
        self._tried: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._missing: dict[str, int] = {}
        self._last = (-1, -1)
        self.ordered = True
        self.next = 0
        """The offset that is read next."""
        self.end = 0
        """The offset behind the last that was acknowledged."""
        self.answered_s: list[float] = []
        self.counts = {
            "acknowledged": 0,
            "refused": 0,
            "unknown": 0,
            "unknown, stored": 0,
        }

    def begin(self, body: str) -> None:
        self._tried[body] = UNKNOWN

    def acknowledge(self, body: str, reply: SendReply) -> None:
        offset = reply.queue_offset
        placed = message_id.unpack(int(reply.msg_id[-16:], 16))
        if (placed.partition, placed.offset) != (self.partition, offset):
            self._say(f"{body} is acknowledged for {placed}, not at {offset}")
        if self._seen.get(body, offset) != offset:
            self._say(f"{body} is acknowledged at {offset}, read at {self._seen[body]}")
        self._tried[body] = offset
        self.end = max(self.end, offset + 1)
        self.answered_s.append(time.monotonic())
        self.counts["acknowledged"] += 1
        if body not in self._seen:
            self._missing[body] = offset
        else:
            # It was read before its answer came.
            self.counts["unknown, stored"] -= 1

    def refuse(self, body: str, why: str) -> None:
        self._tried[body] = REFUSED
        self.counts["refused"] += 1
        if body in self._seen:
            self._say(f"{body} is stored and was refused: {why}")

    def doubt(self) -> None:
        self.counts["unknown"] += 1

    def take(self, offset: int, body: str) -> None:
        """Account for a message that was read."""
        if offset != self.next:
            self._say(f"{body} is at {offset}, expected {self.next}")
        self.next = offset + 1
        told = self._tried.get(body)
        if told is None:
            self._say(f"{body} at {offset} was never sent")
        elif told == REFUSED:
            self._say(f"{body} at {offset} was refused")
        elif told >= 0 and told != offset:
            self._say(f"{body} is at {offset}, acknowledged at {told}")
        elif told == UNKNOWN:
            self.counts["unknown, stored"] += 1
        if body in self._seen:
            self._say(f"{body} is at {offset} and at {self._seen[body]}")
        self._seen[body] = offset
        self._missing.pop(body, None)
        number, attempt = map(int, body.split(".")[1:])
        if self.ordered and (number, attempt) <= self._last:
            self._say(f"{body} at {offset} is behind {self._last}")
        self._last = number, attempt

    def check_missing(self) -> None:
        """Report what was acknowledged and passed over."""
        for body, offset in [*self._missing.items()]:
            if offset < self.next:
                self._say(f"{body}, acknowledged at {offset}, is lost")
                del self._missing[body]

    def is_acknowledged(self, body: str) -> bool:
        return self._tried.get(body, UNKNOWN) >= 0

    def acknowledged(self) -> set[str]:
        return {body for body, told in self._tried.items() if told >= 0}

    def _say(self, what: str) -> None:
        self._report(f"{self.topic}/{self.partition}: {what}")


class Sender:
    """Sends to one partition, whoever serves it.

    Args:
        ledger: What is noted where.
        router: Knows who serves it.
        seconds: How long a try may take.
        pause_s: Between two messages.
        any_node: Ask any node of the broker, which sends it on to the master.
    """

    def __init__(
        self,
        ledger: Ledger,
        router: Router,
        *,
        seconds: float = TRY_S,
        pause_s: float = PAUSE_S,
        any_node: bool = False,
        noted: Callable[[str], None],
    ) -> None:
        self._ledger = ledger
        self._router = router
        self._seconds = seconds
        self._pause_s = pause_s
        self._any_node = any_node
        self._noted = noted
        self._caller = Caller()

    async def run(self, numbers: itertools.count[int], stop: asyncio.Event) -> None:
        try:
            while not stop.is_set():
                number = next(numbers)
                for attempt in itertools.count():
                    if stop.is_set() or await self._try(f"{number}.{attempt}"):
                        break
                    await self._router.refresh()
                    await asyncio.sleep(AGAIN_S)
                await asyncio.sleep(self._pause_s)
        finally:
            self._caller.close()

    async def _try(self, name: str) -> bool:
        ledger = self._ledger
        place = self._router.places.get((ledger.topic, ledger.partition))
        if place is None:
            return False
        body = f"{ledger.partition}.{name}"
        node = random.choice(place.nodes) if self._any_node else place.nodes[0]
        ledger.begin(body)
        try:
            answer = await self._caller.ask(
                node,
                sending(ledger.topic, queue_id=place.queue_id),
                body.encode(),
                seconds=self._seconds,
            )
        except NotSentError as error:
            ledger.refuse(body, str(error))
        except (OSError, TimeoutError):
            ledger.doubt()
        else:
            if answer.code == 0:
                ledger.acknowledge(body, answer.read(SendReply))
                self._noted(place.broker)
                return True
            if answer.code in MAYBE:
                ledger.doubt()
            else:
                ledger.refuse(body, f"{answer.code} {answer.remark}")
        return False


class Reader:
    """Reads all that a partition holds, from any node of whoever serves it."""

    def __init__(self, ledger: Ledger, router: Router) -> None:
        self._ledger = ledger
        self._router = router

    async def run(self, stop: asyncio.Event) -> None:
        caller = Caller()
        try:
            while not stop.is_set():
                count = 0
                with suppress(OSError, TimeoutError, NotSentError):
                    count = await self._read(caller)
                if not count:
                    await asyncio.sleep(PULL_S)
        finally:
            caller.close()

    async def _read(self, caller: Caller) -> int:
        ledger = self._ledger
        place = self._router.places.get((ledger.topic, ledger.partition))
        if place is None:
            return 0
        answer = await caller.ask(
            random.choice(place.nodes),
            pulling(ledger.topic, ledger.next, queue_id=place.queue_id),
            seconds=TRY_S,
        )
        if answer.code:
            return 0
        found = answer.messages()
        placed = {message_id.unpack(one.message_id).partition for one in found}
        if placed != {ledger.partition}:
            # The queue has moved, and its number is another's now.
            await self._router.refresh()
            return 0
        for one in found:
            ledger.take(one.queue_offset, one.body.decode())
        return len(found)


def longest(answered_s: list[float], since_s: float, until_s: float) -> float:
    """The longest time between answers that touches a span of time."""
    first = max(0, bisect_left(answered_s, since_s) - 1)
    last = bisect_left(answered_s, until_s) + 1
    pairs = itertools.pairwise(answered_s[first:last])
    return max((after - before for before, after in pairs), default=0.0)
