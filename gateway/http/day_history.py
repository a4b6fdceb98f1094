"""What a node's broker did in the last day, for plots: kept in memory and in a file.

Once a minute the node looks at its own topics and groups, as for /metrics, and asks
nobody. A series is there as soon as it has a value that is not 0, and goes when a day
has had none, so that idle topics and groups cost nothing: 1.4 KiB each, and no more
than `MOST_SERIES`. The file is written every ten minutes and at the end; what it lacks
is a gap, as is the time in which another node led the broker.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import structlog

from ropeway.common.reasons import reason_of
from ropeway.gateway.http.metrics.of_groups import lags_of
from ropeway.gateway.http.metrics.of_topics import QUEUES_AT_ONCE
from ropeway.gateway.node import names
from ropeway.gateway.node.backoff import keep_doing
from ropeway.gateway.node.traffic import BROKER_GET_NUMS, BROKER_PUT_NUMS
from ropeway.gateway.processors.fast_failure import SENDS
from ropeway.gateway.wire.unreadable import UNREADABLE
from ropeway.storage import private
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ropeway.gateway.node.node import Node

log = structlog.get_logger(__name__)

Kind = Literal["broker", "topic", "group"]
Range = Literal["hours", "day"]

FILE = "history.bin"
VERSION = 1
MINUTE_MS = 60_000
WRITE_EVERY = 10
"""Looks."""
MOST_SERIES = 20_000
"""28 MiB. The series of further topics and groups are left out."""
_AT_ONCE = 64
"""Series that are turned in one go: of 20,000, a day takes 0.34 s of CPU in all."""
MEASURES: dict[Kind, tuple[str, ...]] = {
    "broker": ("in", "out", "send_ms"),
    "topic": ("in",),
    "group": ("lag", "out"),
}
"""Messages a second, milliseconds, and messages."""


class _Step(NamedTuple):
    """How finely a range is kept."""

    ms: int
    slots: int


STEPS: dict[Range, _Step] = {
    "hours": _Step(MINUTE_MS, 180),
    "day": _Step(10 * MINUTE_MS, 144),
}
Key = tuple[Kind, str, str]
"""Kind, name and measure."""


class _Stored(msgspec.Struct, frozen=True):
    """The file: rings as they lie in memory, of 4 bytes a slot."""

    version: int
    time_ms: int
    """Of the last look."""
    seen: dict[str, bytes]
    series: list[tuple[Kind, str, str, dict[str, bytes]]]


class Past(NamedTuple):
    """Some measures over a range; a slot that nobody looked at is None in each."""

    times_ms: list[int]
    series: dict[str, list[float | None]]


class _Rings:
    """A value for each slot of each range."""

    __slots__ = ("by_range",)

    def __init__(self, stored: dict[str, bytes] | None = None) -> None:
        self.by_range = {
            name: array("f", (stored or {}).get(name) or bytes(4 * step.slots))
            for name, step in STEPS.items()
        }

    def empty(self, slots: dict[Range, list[int]]) -> None:
        """Have 0 in some slots of each range."""
        for name, numbers in slots.items():
            ring = self.by_range[name]
            for number in numbers:
                ring[number] = 0.0

    def are_empty(self) -> bool:
        """Whether each value is 0."""
        return not any(map(any, self.by_range.values()))

    def stored(self) -> dict[str, bytes]:
        return {name: ring.tobytes() for name, ring in self.by_range.items()}


class DayHistory:
    """The last day of a node's broker.

    Args:
        node: Whose broker it is.
        now_ms: The clock, in milliseconds since 1970.
    """

    def __init__(
        self, node: Node, now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6
    ) -> None:
        self._node = node
        self._now_ms = now_ms
        self._file = node.config.data / FILE
        self._series: dict[Key, _Rings] = {}
        self._seen = _Rings()
        """In each slot, how many looks there were."""
        self._last_ms = 0
        self._known: dict[Key, tuple[int, float]] = {}
        """Counters at the last look, with its time in ms."""
        self._looks = 0
        self._is_first = True
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Go on from the file, and begin to look."""
        stored = await asyncio.to_thread(_read, self._file)
        if stored is not None:
            self._last_ms = stored.time_ms
            self._seen = _Rings(stored.seen)
            self._series = {
                (kind, name, measure): _Rings(rings)
                for kind, name, measure, rings in stored.series[:MOST_SERIES]
            }
        self._task = asyncio.get_running_loop().create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        await self.look()
        await keep_doing("history of the day", MINUTE_MS / 1000, self.look)

    async def close(self) -> None:
        """Look no longer, and write down what is known."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._write()

    def past(self, kind: Kind, name: str, wanted: Range) -> Past:
        """All measures of a topic, a group, or of the broker, whose name is empty."""
        step = STEPS[wanted]
        newest, last = self._now_ms() // step.ms, self._last_ms // step.ms
        numbers = range(newest - step.slots + 1, newest + 1)
        seen = self._seen.by_range[wanted]
        series: dict[str, list[float | None]] = {}
        for measure in MEASURES[kind]:
            rings = self._series.get((kind, name, measure))
            ring = rings.by_range[wanted] if rings is not None else None
            series[measure] = [
                (ring[number % step.slots] if ring is not None else 0.0)
                if number <= last and seen[number % step.slots]
                else None
                for number in numbers
            ]
        return Past([number * step.ms for number in numbers], series)

    async def look(self) -> None:
        """Take in how all topics and groups are now."""
        now_ms = self._now_ms()
        await self._turn(now_ms)
        self._is_first = not self._known
        if self._node.leadership.leads:
            for name, step in STEPS.items():
                # The first look tells how far things are, and not how fast they go.
                looks = self._seen.by_range[name]
                looks[now_ms // step.ms % step.slots] += not self._is_first
            self._look_at_broker(now_ms)
            await self._look_at_topics(now_ms)
            await self._look_at_groups(now_ms)
        else:
            self._known.clear()
        self._looks += 1
        if self._looks % WRITE_EVERY == 0:
            await self._write()

    def _stored(self) -> _Stored:
        """What the file is to have; in a thread, while nothing changes."""
        return _Stored(
            VERSION,
            self._last_ms,
            self._seen.stored(),
            [(*key, rings.stored()) for key, rings in self._series.items()],
        )

    def _look_at_broker(self, now_ms: int) -> None:
        traffic = self._node.traffic
        self._note(("broker", "", "in"), traffic.rates(BROKER_PUT_NUMS)[1], now_ms)
        self._note(("broker", "", "out"), traffic.rates(BROKER_GET_NUMS)[1], now_ms)
        by_code = self._node.latencies.by_code()
        samples = [by_code[code] for code in SENDS if code in by_code]
        key: Key = ("broker", "", "send_ms")
        sends: Key = ("broker", "", "sends")
        count = float(sum(sum(one.counts) for one in samples))
        took = sum(one.sum_s for one in samples)
        _, before = self._known.get(key, (0, 0.0))
        _, known = self._known.get(sends, (0, 0.0))
        if count > known:
            self._note(key, 1000 * (took - before) / (count - known), now_ms)
        self._known[key] = now_ms, took
        self._known[sends] = now_ms, count

    async def _look_at_topics(self, now_ms: int) -> None:
        looked_at = 0
        for topic in list(self._node.topics):
            if names.is_system_topic(topic.name):
                continue
            try:
                end = sum(partition.last_end for partition in topic.partitions)
            except LogError:
                continue
            self._note_growth(("topic", topic.name, "in"), end, now_ms)
            looked_at += len(topic.partitions)
            if looked_at >= QUEUES_AT_ONCE:
                looked_at = 0
                await asyncio.sleep(0)

    async def _look_at_groups(self, now_ms: int) -> None:
        node = self._node
        for group in list(node.offsets.groups()):
            if not names.is_listed_group(group):
                continue
            lag = committed = 0
            for name in node.offsets.topics(group):
                topic = node.topics.get(name)
                if topic is None:
                    continue
                try:
                    lag += sum(lags_of(node, group, topic))
                except LogError:
                    continue
                committed += sum(node.offsets.queues(group, name).values())
            self._note(("group", group, "lag"), lag, now_ms)
            self._note_growth(("group", group, "out"), committed, now_ms)
            await asyncio.sleep(0)

    def _note_growth(self, key: Key, count: float, now_ms: int) -> None:
        """Take in how fast something grows, since the last look at it."""
        before = self._known.get(key)
        self._known[key] = now_ms, count
        if before is not None and now_ms > before[0]:
            # Less is a topic made anew, or a group that was reset.
            grown = max(0.0, count - before[1])
            self._note(key, 1000 * grown / (now_ms - before[0]), now_ms)

    def _note(self, key: Key, value: float, now_ms: int) -> None:
        if self._is_first:
            return
        rings = self._series.get(key)
        if rings is None:
            if not value or len(self._series) >= MOST_SERIES:
                return
            rings = self._series[key] = _Rings()
        for name, step in STEPS.items():
            slot = now_ms // step.ms % step.slots
            looks = max(1.0, self._seen.by_range[name][slot])
            ring = rings.by_range[name]
            ring[slot] += (value - ring[slot]) / looks

    async def _turn(self, now_ms: int) -> None:
        """Empty the slots of the time since the last look, and forget what is idle."""
        passed = {
            name: [
                number % step.slots
                for number in range(
                    max(self._last_ms // step.ms, now_ms // step.ms - step.slots) + 1,
                    now_ms // step.ms + 1,
                )
            ]
            for name, step in STEPS.items()
        }
        self._seen.empty(passed)
        for at, (key, rings) in enumerate(list(self._series.items())):
            rings.empty(passed)
            if passed["day"] and rings.are_empty():
                del self._series[key]
            if at % _AT_ONCE == 0:
                await asyncio.sleep(0)
        self._last_ms = max(self._last_ms, now_ms)

    async def _write(self) -> None:
        try:
            await asyncio.to_thread(_replace, self._file, self._stored)
        except OSError as error:
            log.warning(
                "history not written", file=str(self._file), reason=reason_of(error)
            )


def _read(file: Path) -> _Stored | None:
    """What a file has; None where there is none that can be used."""
    try:
        stored = msgspec.msgpack.decode(file.read_bytes(), type=_Stored)
    except FileNotFoundError:
        return None
    except (OSError, *UNREADABLE) as error:
        log.warning("history begins anew", file=str(file), reason=reason_of(error))
        return None
    rings = [stored.seen, *(one[3] for one in stored.series)]
    fits = all(
        len(ring.get(name, b"")) == 4 * step.slots
        for ring in rings
        for name, step in STEPS.items()
    )
    return stored if stored.version == VERSION and fits else None


def _replace(file: Path, stored: Callable[[], _Stored]) -> None:
    """Write a file, or leave the one that is there."""
    fresh = file.with_suffix(".new")
    with open(fresh, "wb", opener=private.opener) as writing:
        writing.write(msgspec.msgpack.encode(stored()))
    fresh.replace(file)
