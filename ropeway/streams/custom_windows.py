"""Windows that do more than Spark's own: fire early or idle, tell what is late, mirror.

By event time a timer fires each window when it is over. Where results come by the clock
as well, a key with open windows has one timer at a time, which looks at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row

from ropeway.streams.accumulator import Folding
from ropeway.streams.failures import TOGETHER
from ropeway.streams.open_windows import Adding, Open
from ropeway.streams.records import dump_key, dump_value, from_records, load
from ropeway.streams.stateful import STATE, Stateful
from ropeway.streams.windows import Firing, Window, Windowed, spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

    from ropeway.streams.aggregates import Accumulator
    from ropeway.streams.mirror import StateMirror
    from ropeway.streams.records import Dead, Record

    Late = Callable[[Sequence[tuple[Record, str]]], object]
    """Takes records that are late, and why."""

RECORDS = "key binary, value binary, at_ms bigint"
"""The columns of records here, on the way in and out."""

LATE = b"\x01"
"""What stands for the key of a record that was late, to be counted."""

LATE_COUNT = "late"
"""What Spark's progress calls their number."""


@dataclass(frozen=True)
class Plan:
    """What a step's windows are like."""

    window: Window
    make: Callable[[], Accumulator]
    firing: Firing = field(default_factory=Firing)
    late: Late | None = None


class Windowing(Stateful):
    """Adds records to the windows that they are in, and fires these.

    Args:
        name: The step's name.
        plan: What its windows are like.
        dead: Takes records that the accumulator fails at.
        mirror: Makes messages of what is kept of a window.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        dead: Dead | None = None,
        mirror: StateMirror | None = None,
    ) -> None:
        super().__init__(name, dead, mirror)
        self._plan = plan
        self._late: list[tuple[Record, str]] = []
        self._told_ms = 0

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._handle = handle
        self._state = handle.getValueState("windows", STATE)

    def handleInitialState(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002
        initialState: Row,  # noqa: N803
        timerValues: TimerValues,  # noqa: N803
    ) -> None:
        """Take over what a mirror has of a key."""
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        windows = [
            Open(begin, end, dump_value(state), has_news, now_ms, now_ms)
            for begin, end, state, has_news in load(initialState.state)
        ]
        self._keep(windows)
        self._wait(windows, now_ms)

    def take(
        self, key: bytes, rows: Iterator[Row], times: TimerValues
    ) -> Iterator[Row]:
        """Add the records of one key."""
        now_ms = times.getCurrentProcessingTimeInMs()
        over_ms = self._over_ms(times)
        kept = self._state.get()
        windows: list[Open] = load(kept[0]) if kept else []
        had_any = bool(windows)
        adding = Adding(self._plan.window, self._plan.make, windows)
        for row in sorted(rows, key=lambda one: one.at_ms):
            value = load(row.value)
            places = [
                one for one in spans(self._plan.window, row.at_ms) if one[1] > over_ms
            ]
            if not places:
                yield self._missed((load(key), value, row.at_ms), over_ms)
                continue
            try:
                adding.add(places, value, now_ms)
            except Exception as error:  # noqa: BLE001 - users' code
                self._failures.put((load(key), value, row.at_ms), error)
        if adding.changed:
            self._keep(adding.end())
        if not (had_any and self._ticks):
            self._wait(adding.new, now_ms)
        for window, folding in adding.changed:
            yield from self._mirrored(key, window, folding)
        for begin_ms, end_ms in adding.gone:
            yield from self._mirrored(key, Open(begin_ms, end_ms), None)
        yield from self._tell(over_ms)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Fire what is due."""
        kept = self._state.get()
        if not kept:
            return
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        over_ms = self._over_ms(timerValues)
        left: list[Open] = []
        for window in load(kept[0]):
            is_over = window.end_ms <= over_ms
            if window.has_news and (is_over or self._is_due(window, now_ms)):
                folding = Folding(self._plan.make, window.kept)
                yield from self._fired(bytes(key[0]), window, folding)
                window.has_news, window.fired_ms = False, now_ms
                if not is_over:
                    yield from self._mirrored(bytes(key[0]), window, folding)
            if is_over:
                yield from self._mirrored(bytes(key[0]), window, None)
            else:
                left.append(window)
        self._keep(left)
        if self._ticks:
            self._wait(left, now_ms)
        yield from self._tell(over_ms)

    def row(self, key: bytes, value: bytes, like: Row) -> Row:
        """A row of the time of another."""
        return Row(key=key, value=value, at_ms=like.at_ms)

    def close(self) -> None:
        """Send what was put aside; the task ends with this, and fails if it does."""
        super().close()
        self._send_late()

    def _send_late(self) -> None:
        if self._plan.late is not None and self._late:
            self._plan.late(self._late)
            self._late = []

    @property
    def _ticks(self) -> bool:
        return self._plan.firing.tick_ms is not None

    def _over_ms(self, times: TimerValues) -> int:
        """What ends up to here is over, also before the job was restored."""
        floor_ms = self.mirror.watermark_ms if self.mirror else 0
        return max(times.getCurrentWatermarkInMs(), floor_ms)

    def _is_due(self, window: Open, now_ms: int) -> bool:
        early_ms, idle_ms = self._plan.firing.early_ms, self._plan.firing.idle_ms
        return (early_ms is not None and now_ms - window.fired_ms >= early_ms) or (
            idle_ms is not None and now_ms - window.touched_ms >= idle_ms
        )

    def _fired(self, key: bytes, window: Open, folding: Folding) -> Iterator[Row]:
        windowed = Windowed(load(key), window.begin_ms, window.end_ms)
        try:
            result = folding.result()
        except Exception as error:  # noqa: BLE001 - users' code
            self._failures.put((windowed, folding.state, window.end_ms - 1), error)
            return
        yield _row(dump_key(tuple(windowed)), dump_value(result), window.end_ms - 1)

    def _missed(self, record: Record, over_ms: int) -> Row:
        if self._plan.late is not None:
            self._late.append((record, f"step {self.name!r} is at {over_ms}"))
            if len(self._late) >= TOGETHER:
                self._send_late()
        return _row(LATE, b"", 0)

    def _keep(self, windows: list[Open]) -> None:
        if windows:
            self._state.update((dump_value(windows),))
        else:
            self._state.clear()

    def _wait(self, windows: list[Open], now_ms: int) -> None:
        tick_ms = self._plan.firing.tick_ms
        if tick_ms is None:
            # A timer goes off when the watermark is beyond it.
            for window in windows:
                self._handle.registerTimer(window.end_ms - 1)
        elif windows:
            self._handle.registerTimer(now_ms + tick_ms)

    def _mirrored(
        self, key: bytes, window: Open, folding: Folding | None
    ) -> Iterator[Row]:
        if self.mirror is None:
            return
        windowed = (load(key), window.begin_ms, window.end_ms)
        body = None
        if folding is not None:
            body = {"state": folding.state, "has_news": window.has_news}
        yield _row(*self.mirror.message(windowed, body), 0)

    def _tell(self, over_ms: int) -> Iterator[Row]:
        """Mirror how far time has come, once a task."""
        if self.mirror is not None and over_ms > self._told_ms:
            self._told_ms = over_ms
            yield _row(*self.mirror.watermark(over_ms), 0)


def from_windows(batch: pa.RecordBatch) -> Iterator[Record]:
    """Reads what windows came to: keys are `Windowed`."""
    for key, value, time_ms in from_records(batch):
        yield Windowed(*key), value, time_ms


def _row(key: bytes, value: bytes, at_ms: int) -> Row:
    return Row(key=key, value=value, at_ms=at_ms)
