"""Appends are joined, acknowledged in order, and answered whatever Pulsar does.

The producer is a fake that acknowledges when it is told to: so faults are exact.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import (
    LogBusyError,
    LogError,
    LogLimitError,
    LogUnavailableError,
    OutcomeUnknownError,
)
from ropeway.storage.pulsar.appender import (
    MESSAGE_OVERHEAD_BYTES,
    Appender,
    Flight,
    Traffic,
)
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.errors import FencedError, PulsarError
from ropeway.storage.pulsar.pack import peel
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.terms import LAST_OFFSET, after

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ropeway.storage.api import RecordParts

TERM = 3

Told = list[tuple[str, int, LogError | None]]


class Broker:
    """Stands in for a producer; keeps what was sent until it is acknowledged."""

    silence = "Pulsar did not answer in time"
    is_shut_out = False

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, int, int]] = []
        self._waiting: deque[Callable[[Position | None, PulsarError | None], None]]
        self._waiting = deque()

    def send(
        self, payload: list[bytes], sequence_id: int, done: Any, *_: Any, **more: Any
    ) -> None:
        self.sent.append((payload[0], sequence_id, more["num_messages"]))
        self._waiting.append(done)

    def acknowledge(self, count: int = 1) -> None:
        for _ in range(count):
            self._waiting.popleft()(Position(1, len(self.sent)), None)

    def fence(self) -> None:
        while self._waiting:
            self._waiting.popleft()(None, FencedError("taken over"))


class Way:
    """An appender, what it was told, and what it stored."""

    def __init__(
        self, *, first: int = 0, largest: int = 1 << 20, **settings: Any
    ) -> None:
        self.broker = Broker()
        self.traffic = Traffic(settings.pop("waiting_bytes", 1 << 20))
        self.flights: list[Flight] = []
        self.grown = 0
        self.told: Told = []
        self.broker.max_message_bytes = largest + MESSAGE_OVERHEAD_BYTES
        partition = SimpleNamespace(
            full_name="orders-partition-0",
            stored=lambda flight, _: self.flights.append(flight),
            grown=self._grow,
        )
        broker, told = self.broker, PulsarLogSettings(**settings)
        self.appender = Appender(partition, broker, TERM, first, told, self.traffic)  # type: ignore[arg-type]

    def _grow(self) -> None:
        self.grown += 1

    def append(self, name: str, *datas: bytes) -> None:
        records: list[RecordParts] = [
            (struct.pack(">i", len(data) + 4) + data, 0, ()) for data in datas
        ]
        self.appender.append(
            records, 5, lambda offset, error: self.told.append((name, offset, error))
        )

    @property
    def end(self) -> int:
        return max((flight.visible_end for flight in self.flights), default=0)


def run(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(test())


async def tick() -> None:
    await asyncio.sleep(0)


def test_appends_of_one_tick_are_one_pack() -> None:
    async def main() -> None:
        way = Way(first=10)
        way.append("a", b"1", b"2")
        way.append("b", b"3")
        assert way.broker.sent == []
        await tick()
        ((pack, sequence_id, count),) = way.broker.sent
        assert (sequence_id, count) == (after(TERM, 13), 3)
        assert (peel(pack).base_offset, peel(pack).count) == (10, 3)
        assert way.told == []
        way.broker.acknowledge()
        assert way.told == [("a", 10, None), ("b", 12, None)]
        assert (way.grown, way.traffic.waiting_bytes, way.appender.is_idle) == (
            1,
            0,
            True,
        )

    run(main)


def test_while_packs_are_in_flight_appends_gather() -> None:
    async def main() -> None:
        way = Way(packs_in_flight=2)
        for number in range(6):
            way.append(str(number), b"x")
            await tick()
        assert [count for _, _, count in way.broker.sent] == [1, 1]
        way.broker.acknowledge()
        assert [count for _, _, count in way.broker.sent] == [1, 1, 4]
        way.broker.acknowledge(2)
        assert [offset for _, offset, _ in way.told] == list(range(6))

    run(main)


def test_a_pack_is_no_larger_than_it_should_be() -> None:
    async def main() -> None:
        way = Way(pack_bytes=4096, packs_in_flight=9)
        for number in range(10):
            way.append(str(number), b"x" * 1000)
        await tick()
        assert [count for _, _, count in way.broker.sent] == [4, 4, 2]

    run(main)


def test_an_append_above_the_brokers_limit_shows_when_it_is_whole() -> None:
    async def main() -> None:
        way = Way(largest=10_000, pack_bytes=4096, packs_in_flight=1)
        way.append("before", b"b")
        way.append("large", *[bytes([65 + i]) * 4000 for i in range(5)])
        way.append("after", b"a")
        await tick()
        ends = []
        while not way.appender.is_idle:
            way.broker.acknowledge()
            ends.append(way.end)
        assert ends == [1, 1, 1, 7]
        assert way.told == [("before", 0, None), ("large", 1, None), ("after", 6, None)]

    run(main)


def test_a_record_above_the_brokers_limit_is_refused() -> None:
    async def main() -> None:
        way = Way(largest=1000)
        with pytest.raises(
            LogLimitError, match=r"record of 2004 bytes; allowed: about"
        ):
            way.append("large", b"x" * 2000)
        with pytest.raises(LogLimitError, match=r"record of 2004 bytes"):
            way.append("large", b"x", b"x" * 2000)
        assert way.appender.next_offset == 0
        way.append("fits", b"x" * 900)
        await tick()
        way.broker.acknowledge()
        assert way.told == [("fits", 0, None)]

    run(main)


def test_records_say_their_own_size() -> None:
    async def main() -> None:
        way = Way()
        with pytest.raises(LogLimitError, match=r"record of 2 bytes; allowed: 4"):
            way.appender.append([(b"ab", 0, ())], 1, lambda *_: None)
        with pytest.raises(LogLimitError, match=r"record of 5 bytes says it has 7"):
            way.appender.append([(b"\0\0\0\7x", 0, ())], 1, lambda *_: None)
        assert way.traffic.waiting_bytes == 0

    run(main)


def test_offsets_end_where_message_ids_do() -> None:
    async def main() -> None:
        way = Way(first=LAST_OFFSET)
        with pytest.raises(LogLimitError, match=str(LAST_OFFSET)):
            way.append("two", b"1", b"2")
        way.append("one", b"1")
        assert way.appender.next_offset == LAST_OFFSET + 1
        await tick()
        way.broker.acknowledge()

    run(main)


def test_too_much_or_too_late_is_refused_as_busy() -> None:
    async def main() -> None:
        way = Way(waiting_bytes=100, wait_ms=1)
        way.append("a", b"x" * 50)
        with pytest.raises(LogBusyError, match=r"busy: 70 bytes wait .* allowed: 100"):
            way.append("b", b"x" * 50)
        await tick()
        await asyncio.sleep(0.005)
        with pytest.raises(LogBusyError, match=r"has waited for Pulsar .* allowed: 1"):
            way.append("c", b"x")
        way.broker.acknowledge()
        way.append("d", b"x")
        await tick()
        way.broker.acknowledge()
        assert [(name, offset) for name, offset, _ in way.told] == [("a", 0), ("d", 1)]

    run(main)


def test_an_unknown_outcome_stays_where_it_is_and_offsets_go_on_after_it() -> None:
    async def main() -> None:
        way = Way(packs_in_flight=1)
        way.append("sent", b"1", b"2")
        await tick()
        way.append("unsent", b"3")
        await tick()
        way.appender.give_up()
        kinds = [(name, offset, type(error)) for name, offset, error in way.told]
        assert kinds == [
            ("sent", -1, OutcomeUnknownError),
            ("unsent", -1, LogUnavailableError),
        ]
        assert way.traffic.waiting_bytes == 0
        with pytest.raises(LogUnavailableError, match="outcome of earlier appends"):
            way.append("refused", b"4")
        way.broker.acknowledge()
        assert (way.end, len(way.told), way.grown) == (2, 2, 1)
        way.append("later", b"5")
        await tick()
        way.broker.acknowledge()
        assert way.told[2:] == [("later", 2, None)]
        assert way.traffic.waiting_bytes == 0

    run(main)


def test_who_is_fenced_answers_all_and_refuses_from_then_on() -> None:
    async def main() -> None:
        way = Way(packs_in_flight=2)
        for name in ("a", "b", "c"):
            way.append(name, b"x")
            await tick()
        way.broker.fence()
        kinds = [(name, type(error)) for name, _, error in way.told]
        assert kinds == [
            ("a", OutcomeUnknownError),
            ("b", OutcomeUnknownError),
            ("c", LogUnavailableError),
        ]
        assert way.flights == []
        assert way.traffic.appenders == {}
        with pytest.raises(LogUnavailableError, match="taken over"):
            way.append("d", b"x")

    run(main)


def test_draining_waits_for_all_before_and_tells_when_it_cannot() -> None:
    async def main() -> None:
        way = Way(packs_in_flight=1)
        way.append("a", b"x")
        await tick()
        way.append("b", b"x")
        drained = asyncio.ensure_future(way.appender.drained())
        await tick()
        way.broker.acknowledge()
        await tick()
        assert not drained.done()
        way.broker.acknowledge()
        await drained
        way.append("c", b"x")
        drained = asyncio.ensure_future(way.appender.drained())
        await tick()
        way.appender.fail("gone")
        with pytest.raises(OutcomeUnknownError, match="gone"):
            await drained

    run(main)


def test_a_callback_that_raises_does_not_reach_others() -> None:
    async def main() -> None:
        way = Way()
        way.appender.append([(b"\0\0\0\4", 0, ())], 1, lambda *_: 1 / 0)  # type: ignore[arg-type,return-value]
        way.append("b", b"x")
        await tick()
        way.broker.acknowledge()
        assert way.told == [("b", 1, None)]

    run(main)


def test_the_oldest_pack_in_flight_says_since_when_pulsar_has_not_answered() -> None:
    async def main() -> None:
        way = Way(packs_in_flight=2)
        times = [time.monotonic()]
        for name in ("a", "b"):
            way.append(name, b"x")
            await tick()
            times.append(time.monotonic())
            await asyncio.sleep(0.001)
        assert times[0] <= way.appender.oldest_at <= times[1]
        way.broker.acknowledge()
        assert times[1] < way.appender.oldest_at <= times[2]
        assert way.traffic.heard_at > times[2]
        way.broker.acknowledge()

    run(main)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("large"), st.integers(3, 6)),
        st.tuples(st.just("tick"), st.just(0)),
        st.tuples(st.just("ack"), st.just(0)),
        st.tuples(st.just("give up"), st.just(0)),
    ),
    max_size=40,
)


@given(steps, st.integers(1, 3))
def test_whatever_happens_packs_are_without_gap_and_each_append_is_answered_once(
    todo: list[tuple[str, int]], in_flight: int
) -> None:
    async def main() -> None:
        way = Way(largest=9000, pack_bytes=4096, packs_in_flight=in_flight)
        appended: dict[str, tuple[int, int]] = {}
        for number, (step, count) in enumerate(todo):
            if step == "tick":
                await tick()
            elif step == "ack" and way.broker._waiting:
                way.broker.acknowledge()
            elif step == "give up" and way.appender._flights:
                way.appender.give_up()
            elif step in {"append", "large"} and way.appender.refusal is None:
                offset = way.appender.next_offset
                size = 4000 if step == "large" else 10
                way.append(str(number), *[b"x" * size] * count)
                appended[str(number)] = (offset, count)
        await tick()
        while way.broker._waiting:
            way.broker.acknowledge()
            await tick()
        assert sorted(name for name, _, _ in way.told) == sorted(appended)
        at = 0
        for data, sequence_id, count in way.broker.sent:
            pack = peel(data)
            assert (pack.base_offset, pack.count) == (at, count)
            assert sequence_id == after(TERM, pack.end)
            at = pack.end
        for name, offset, error in way.told:
            if error is None:
                assert offset == appended[name][0]
                assert way.end >= offset + appended[name][1]
        assert way.end == way.appender.next_offset == at
        assert way.traffic.waiting_bytes == 0
        assert way.appender.is_idle

    run(main)
