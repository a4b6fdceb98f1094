"""What is under way while nodes are replaced by ones of another version.

A round is begun by one version and ended by another: messages that wait for their time,
of which one is recalled; messages that are in a consumer's hands, of which some are
acknowledged; a transaction whose producer is asked how it ended.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.faults.calls import Caller, NotSentError
from ropeway.client import Admin, admin_topics
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import FROM_EARLIEST, AckMessage, PopMessage
from tests.clients.harness import AgentError
from tests.frames import Frame
from tests.gateway.pop.rig import popped
from tests.requests import sending
from tests.ropeway.client.scenario import PATIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ropeway.gateway.wire.header import Header
    from tests.clients.harness import Call, Event, Session

TIMED, TRANSACTED, POPPED = "timed", "transacted", "popped"
EACH = 3
"""Messages of a kind in a round."""
DUE_MS = 6000
RECALLED_MS = 600_000
"""So much later, so that none is due before it is recalled, however long nodes take."""
KEPT_MS = 25_000
"""How long messages are in a consumer's hands: over a node's end and start."""
DROPPED_MS = 3000
SKEW_MS = 100
PATIENCE_S = 180.0
TRY_S = 5.0
PAUSE_S = 0.2
ROUTES_MS = 1000
GROUP = "poppers"


class Receipt(NamedTuple):
    """A message in a consumer's hands, and what acknowledges it."""

    body: str
    broker: str
    ack: AckMessage


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Rounds:
    """What was begun, and what must come of it.

    Args:
        session: A Java client.
        brokers: Who has a queue of each topic.
        address: A node of a broker to ask.
    """

    def __init__(
        self, session: Session, brokers: Iterable[str], address: Callable[[str], str]
    ) -> None:
        self._session = session
        self._address = address
        self._callers = {broker: Caller() for broker in brokers}
        self._due: dict[str, int] = {}
        self._handles: dict[str, str] = {}
        self._recalled: set[str] = set()
        self._asked: set[str] = set()
        self._producers: list[Call] = []
        self._consumers: dict[str, Call] = {}
        self._held: list[Receipt] = []
        self._until_ms: dict[str, float] = {}
        """Until when nobody may have a message; for ever, if it is acknowledged."""
        self._last_ms = 0.0
        self._missing: set[str] = set()

    async def prepare(self, name_server: str) -> None:
        """Make topics with a queue on each broker, and consumers."""
        async with Admin(name_server, config=PATIENT) as admin:
            for topic in (TIMED, TRANSACTED, POPPED):
                for broker in self._callers:
                    await admin_topics.create_on(admin, topic, broker, 1)
        for topic in (TIMED, TRANSACTED):
            self._consumers[topic] = await asyncio.to_thread(self._consumer, topic)

    def _consumer(self, topic: str) -> Call:
        where = {"from": "FIRST_OFFSET", "poll_routes_ms": ROUTES_MS}
        return self._session.start(
            "consume", topic=topic, group=f"{topic}-readers", **where
        )

    async def begin(self, name: str) -> None:
        """Leave things open."""
        await asyncio.to_thread(self._time, name)
        await asyncio.to_thread(self._transact, name)
        for broker in self._callers:
            for number in range(EACH):
                await self._send(broker, f"{name} kept {broker} {number}")
            self._held += await self._pop(broker, KEPT_MS)
            await self._send(broker, f"{name} dropped {broker}")
            await self._pop(broker, DROPPED_MS)

    async def end(self) -> None:
        """End what does not end by itself."""
        await asyncio.to_thread(self._recall)
        for one in self._held:
            await self._acknowledge(one)
        self._held = []

    async def check(self) -> None:
        """Return when all has come that must, and nothing that must not."""
        until_s = time.monotonic() + PATIENCE_S
        # What was not acknowledged, though it was answered so, comes again by then.
        last_ms = self._last_ms
        while self._missing or now_ms() < last_ms:
            assert time.monotonic() < until_s, f"never popped again: {self._missing}"
            for broker in self._callers:
                for one in await self._pop(broker, KEPT_MS):
                    await self._acknowledge(one)
            await asyncio.sleep(PAUSE_S)
        timed = await asyncio.to_thread(self._received, TIMED, set(self._due))
        assert not self._recalled & {one["body"] for one in timed}
        for one in timed:
            assert one["stored_ms"] >= self._due[one["body"]], one
        ended = await asyncio.to_thread(self._received, TRANSACTED, self._asked)
        assert {one["body"] for one in ended} == self._asked
        for producer in self._producers:
            await asyncio.to_thread(producer.stop)

    def close(self) -> None:
        """Close all connections."""
        for one in self._callers.values():
            one.close()

    def _received(self, topic: str, wanted: set[str]) -> list[Event]:
        consumer = self._consumers[topic]
        consumer.wait_for_bodies([*wanted], seconds=PATIENCE_S)
        return consumer.stop()

    def _time(self, name: str) -> None:
        due_ms = now_ms() + DUE_MS
        due = {f"{name} timed {one}": due_ms + one for one in range(2 * EACH)}
        late = {f"{name} recalled {one}": due_ms + RECALLED_MS for one in range(2)}
        sent = self._produce(due | late)
        self._due |= due
        self._handles |= {body: sent[body]["recall_handle"] for body in late}

    def _produce(self, due: Mapping[str, int]) -> dict[str, Event]:
        sent = self._session.produce(
            TIMED,
            [{"body": body, "deliver_ms": at_ms} for body, at_ms in due.items()],
            retry_for_ms=int(PATIENCE_S * 1000),
            poll_routes_ms=ROUTES_MS,
        )
        return {one["body"]: one for one in sent}

    def _recall(self) -> None:
        for body, handle in self._handles.items():
            until_s = time.monotonic() + PATIENCE_S
            while True:
                try:
                    self._session.ask("recall", "recalled", topic=TIMED, handle=handle)
                    break
                except AgentError:
                    assert time.monotonic() < until_s
                    time.sleep(PAUSE_S)
            self._recalled.add(body)
        self._handles.clear()

    def _transact(self, name: str) -> None:
        checks = {f"{name} asked": "commit", f"{name} undone": "rollback"}
        call = self._session.call(
            "transact",
            topic=TRANSACTED,
            group=f"{name.replace(' ', '-')}-producers",
            poll_routes_ms=ROUTES_MS,
            messages=[
                {"body": body, "properties": {"check": check}}
                for body, check in checks.items()
            ],
        )
        self._producers.append(call.finish())
        assert len(call.events("sent")) == len(checks)
        self._asked.add(f"{name} asked")

    async def _send(self, broker: str, name: str) -> None:
        """Send it, each try a message of its own, and have one acknowledged."""
        until_s = time.monotonic() + PATIENCE_S
        for attempt in itertools.count():
            body = f"{name} {attempt}"
            told = await self._try(broker, sending(POPPED), body.encode())
            if isinstance(told, Frame) and told.code == 0:
                self._missing.add(body)
                return
            assert time.monotonic() < until_s, told
            await asyncio.sleep(PAUSE_S)

    async def _pop(self, broker: str, invisible_ms: int) -> list[Receipt]:
        """What a broker gives; nothing, too, where it cannot answer now."""
        header = PopMessage(
            consumer_group=GROUP,
            topic=POPPED,
            queue_id=0,
            max_msg_nums=32,
            invisible_time=invisible_ms,
            poll_time=0,
            born_time=now_ms(),
            init_mode=FROM_EARLIEST,
        )
        asked_ms = now_ms()
        told = await self._try(broker, header)
        if not isinstance(told, Frame) or told.code:
            return []
        found = popped(told)
        receipts = []
        for one in found.messages:
            body = one.body.decode()
            assert self._until_ms.get(body, 0) <= now_ms(), f"{body} comes again"
            self._until_ms[body] = asked_ms + invisible_ms - SKEW_MS
            again = properties.parse(one.properties).get(properties.POP_CK)
            text = again or found.receipt(one.queue_offset).replace("broker-0", broker)
            receipts.append(Receipt(body, broker, acknowledgement(text)))
        return receipts

    async def _acknowledge(self, one: Receipt) -> None:
        """Acknowledge a message, which counts unless its time is over."""
        until_s = time.monotonic() + PATIENCE_S
        doubtful = False
        while True:
            told = await self._try(one.broker, one.ack)
            # Asked behind the answer: a request may take longer than its time lasts.
            in_time = now_ms() < self._until_ms[one.body]
            if isinstance(told, Frame):
                if told.code == 0:
                    self._last_ms = max(self._last_ms, self._until_ms[one.body])
                    self._until_ms[one.body] = math.inf
                    self._missing.discard(one.body)
                    return
                if told.code == ResponseCode.NO_MESSAGE:
                    assert doubtful or not in_time, f"{one} does not count: {told}"
                    return
            doubtful = doubtful or not isinstance(told, NotSentError)
            assert time.monotonic() < until_s, f"{one}: {told}"
            await asyncio.sleep(PAUSE_S)

    async def _try(
        self, broker: str, what: Header, body: bytes = b""
    ) -> Frame | Exception:
        """The answer of a broker, or why there is none."""
        try:
            address = self._address(broker)
            return await self._callers[broker].ask(address, what, body, seconds=TRY_S)
        except (OSError, TimeoutError, LookupError, NotSentError) as error:
            return error


def acknowledgement(receipt: str) -> AckMessage:
    words = receipt.split(" ")
    retry, queue_id, offset = words[4], words[6], words[7]
    return AckMessage(
        consumer_group=GROUP,
        topic=f"%RETRY%{GROUP}_{POPPED}" if retry == "1" else POPPED,
        queue_id=int(queue_id),
        extra_info=receipt,
        offset=int(offset),
    )
