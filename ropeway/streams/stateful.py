"""Operators that Spark does not have: they run in its transformWithState."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
)

from ropeway.streams import bundles
from ropeway.streams.accumulator import Folding
from ropeway.streams.carried import is_carried, newest
from ropeway.streams.failures import Failures
from ropeway.streams.records import dump_value, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.streaming.stateful_processor import TimerValues

    from ropeway.streams.aggregates import Accumulator
    from ropeway.streams.mirror import StateMirror
    from ropeway.streams.records import Dead

STATE = "data binary"
_SIDES = ("left", "right")


class Stateful(StatefulProcessor):
    """What operators with state have in common.

    Args:
        name: The step's name.
        dead: Takes records that a function of the step fails at; without, it fails.
        mirror: Makes messages of what is kept of a key.
    """

    def __init__(
        self, name: str, dead: Dead | None = None, mirror: StateMirror | None = None
    ) -> None:
        self.name = name
        self.mirror = mirror
        self._failures = Failures(name, dead)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        """Take the records of one key, or pass on what travels with them."""
        found = bytes(key[0])
        if is_carried(found):
            listed = list(rows)
            body = newest(bytes(one.value) for one in listed)
            yield self.row(found, body, listed[0])
        else:
            yield from self.take(found, rows, timerValues)

    @abstractmethod
    def take(
        self, key: bytes, rows: Iterator[Row], times: TimerValues
    ) -> Iterator[Row]:
        """Take the records of one key, and give what comes of them."""

    def row(self, key: bytes, value: bytes, like: Row) -> Row:
        """A row of the time of another."""
        return Row(key=key, value=value, ts=like.ts)

    def close(self) -> None:
        """Send what was put aside; the task ends with this, and fails if it does."""
        self._failures.send()


class Accumulating(Stateful):
    """Adds each record to its key's accumulator, and gives the result each time.

    What comes and goes are bundles.

    Args:
        name: The step's name.
        make: Makes a new accumulator.
        dead: As above.
        mirror: As above.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Accumulator],
        dead: Dead | None = None,
        mirror: StateMirror | None = None,
    ) -> None:
        super().__init__(name, dead, mirror)
        self._make = make

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("accumulator", STATE)

    def handleInitialState(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002
        initialState: Row,  # noqa: N803
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> None:
        """Take over what a mirror has of a key."""
        self._state.update((bytes(initialState.state),))

    def take(
        self,
        key: bytes,
        rows: Iterator[Row],
        times: TimerValues,  # noqa: ARG002
    ) -> Iterator[Row]:
        """Add the records of one key."""
        found = list(rows)
        kept = self._state.get()
        folding = Folding(self._make, None if kept is None else bytes(kept[0]))
        results: bundles.Items = []
        for value, time_ms in bundles.in_order(row.value for row in found):
            try:
                result = folding.added(value)
            except Exception as error:  # noqa: BLE001 - users' code
                self._failures.put((load(key), value, time_ms), error)
                continue
            results.append((bundles.packed(result), time_ms))
        if not results:
            return
        yield self.row(key, bundles.dump(results), found[0])
        self._state.update((folding.dump(),))
        if self.mirror is not None:
            body = {"value": result, "state": folding.state}
            yield self.row(*self.mirror.message(load(key), body), found[0])


class Joining(Stateful):
    """Keeps the latest value of each side of a join, and joins with it.

    Args:
        name: The step's name.
        function: Makes a value of the two.
        is_left: Whether only the left side's records fire, and do so without a right.
        dead: As above.
        mirror: As above.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Any, Any], Any],
        dead: Dead | None = None,
        mirror: StateMirror | None = None,
        *,
        is_left: bool,
    ) -> None:
        super().__init__(name, dead, mirror)
        self._function = function
        self._is_left = is_left

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of both sides."""
        self._sides = {side: handle.getValueState(side, STATE) for side in _SIDES}

    def handleInitialState(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002
        initialState: Row,  # noqa: N803
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> None:
        """Take over what a mirror has of a key."""
        for side, value in load(initialState.state).items():
            self._sides[side].update((dump_value(value),))

    def take(
        self,
        key: bytes,
        rows: Iterator[Row],
        times: TimerValues,  # noqa: ARG002
    ) -> Iterator[Row]:
        """Join the records of one key, in the order of their times."""
        latest: dict[str, bytes] = {}
        for side, state in self._sides.items():
            if (kept := state.get()) is not None:
                latest[side] = bytes(kept[0])
        changed: dict[str, Row] = {}
        # Of one time, the right side comes first: so a left record finds it.
        for row in sorted(rows, key=lambda one: (one.ts, one.side == "left")):
            now = {**latest, row.side: bytes(row.value)}
            if self._fires(row.side, now):
                left, right = (now.get(side) for side in _SIDES)
                values = [None if one is None else load(one) for one in (left, right)]
                try:
                    value = self._function(*values)
                except Exception as error:  # noqa: BLE001 - users' code
                    self._failures.put((load(key), values, 0), error)
                    continue
                yield self.row(key, dump_value(value), row)
            latest = now
            changed[row.side] = row
        for side in changed:
            self._sides[side].update((latest[side],))
        if changed and self.mirror is not None:
            body = {"state": {side: load(value) for side, value in latest.items()}}
            message = self.mirror.message(load(key), body)
            yield self.row(*message, next(iter(changed.values())))

    def _fires(self, side: str, latest: dict[str, bytes]) -> bool:
        return side == "left" if self._is_left else len(latest) == len(_SIDES)
