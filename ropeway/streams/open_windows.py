"""The windows of a key that are not over, and what adding records makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropeway.streams.accumulator import Folding
from ropeway.streams.windows import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.streams.aggregates import Accumulator
    from ropeway.streams.windows import Window

    Span = tuple[int, int]
    """When a window begins and ends."""


@dataclass
class Open:
    """A window of a key that is not over yet."""

    begin_ms: int
    end_ms: int
    kept: bytes | None = None
    """What its accumulator was between batches."""
    has_news: bool = False
    """Whether it has changed since it fired last."""
    touched_ms: int = 0
    """When that was, by the clock."""
    fired_ms: int = 0


class Adding:
    """The windows of a key while a batch of records is added.

    Args:
        window: Which windows records are in.
        make: Makes an accumulator.
        windows: Those that are not over.
    """

    def __init__(
        self, window: Window, make: Callable[[], Accumulator], windows: list[Open]
    ) -> None:
        self._is_session = isinstance(window, Session)
        self._make = make
        self._open = {(one.begin_ms, one.end_ms): one for one in windows}
        self._before = set(self._open)
        self._foldings: dict[Span, Folding] = {}
        self._touched: set[Span] = set()

    def add(self, places: list[Span], value: Any, now_ms: int) -> None:
        """Add a value to its windows, to all or to none."""
        if self._is_session:
            places = [self._grow(places[0], value)]
        else:
            added: list[Folding] = []
            try:
                for span in places:
                    folding = self._folding(span)
                    folding.add(value)
                    added.append(folding)
            except Exception:
                for folding in added:
                    folding.undo()
                raise
        for span in places:
            window = self._open.setdefault(span, Open(*span, fired_ms=now_ms))
            window.has_news, window.touched_ms = True, now_ms
            self._touched.add(span)

    def _grow(self, place: Span, value: Any) -> Span:
        """Add a value to the sessions that its own one touches, which become one."""
        begin_ms, end_ms = place
        met = [one for one in self._open if one[0] <= end_ms and begin_ms <= one[1]]
        if len(met) > 1:
            folding = Folding(self._make)
            for span in met:
                folding.merge(self._folding(span))
        else:
            folding = self._folding(met[0] if met else place)
        folding.add(value)
        grown = (
            min(begin_ms, *(span[0] for span in met)) if met else begin_ms,
            max(end_ms, *(span[1] for span in met)) if met else end_ms,
        )
        fired_ms = [self._open.pop(span).fired_ms for span in met]
        self._touched.difference_update(met)
        self._foldings[grown] = folding
        if fired_ms:
            self._open[grown] = Open(*grown, fired_ms=min(fired_ms))
        return grown

    def _folding(self, span: Span) -> Folding:
        if span not in self._foldings:
            window = self._open.get(span)
            kept = None if window is None else window.kept
            self._foldings[span] = Folding(self._make, kept)
        return self._foldings[span]

    @property
    def changed(self) -> list[tuple[Open, Folding]]:
        """The windows that records were added to."""
        touched = sorted(self._touched)
        return [(self._open[span], self._foldings[span]) for span in touched]

    @property
    def new(self) -> list[Open]:
        """Those that were not there before."""
        return [one for span, one in self._open.items() if span not in self._before]

    @property
    def gone(self) -> list[Span]:
        """Sessions that have grown, or are part of others now."""
        return sorted(self._before - self._open.keys())

    def end(self) -> list[Open]:
        """All windows, as they are to be kept."""
        for window, folding in self.changed:
            window.kept = folding.dump()
        return [self._open[span] for span in sorted(self._open)]
