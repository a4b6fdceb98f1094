"""What conditions on offsets and times of storing leave of each queue of a table.

Spark looks at each row again, so that what is read may be more than what is wanted, and
never less. A queue's times need not grow: a broker's clock may be set back, or another
broker's be behind. So times are taken with a margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pyspark.sql.datasource import Filter

MARGIN_MS = 3_600_000
"""By so much a queue's times may go back without a row being missed: an hour, which a
clock that is kept by NTP or set by hand in another time zone is not beyond."""

_FROM = (EqualTo, In, GreaterThan, GreaterThanOrEqual)
_UNTIL = (EqualTo, In, LessThan, LessThanOrEqual)
_OFFSET, _TIME = ("offset",), ("timestamp",)


class Bounds:
    """Bounds of offsets and times; there are none at first."""

    def __init__(self) -> None:
        self._from: dict[tuple[str, ...], int] = {}
        """Column to the least value, as an offset or in milliseconds since 1970."""
        self._until: dict[tuple[str, ...], int] = {}
        """Column to the greatest value."""

    def take(self, one: Filter) -> None:
        """Heed a condition, if it is one on offsets or times."""
        if not isinstance(one, (*_FROM, *_UNTIL)):
            return
        column = one.attribute
        given = one.value if isinstance(one, In) else (one.value,)
        values = [value for value in given if value is not None]
        if column not in (_OFFSET, _TIME) or not values:
            return
        least, greatest = min(values), max(values)
        if column == _TIME:
            least, greatest = (int(at.timestamp() * 1000) for at in (least, greatest))
        if isinstance(one, _FROM):
            self._from[column] = max(least, self._from.get(column, least))
        if isinstance(one, _UNTIL):
            self._until[column] = min(greatest, self._until.get(column, greatest))

    async def narrow(
        self, begin: int, end: int, offset_at: Callable[[int], Awaitable[int]]
    ) -> tuple[int, int]:
        """Return the range that is left of one.

        Args:
            begin: The first offset.
            end: One past the last one.
            offset_at: Returns the first offset at a time in milliseconds or later.
        """
        if _OFFSET in self._from:
            begin = max(begin, self._from[_OFFSET])
        if _OFFSET in self._until:
            end = min(end, self._until[_OFFSET] + 1)
        if _TIME in self._from and begin < end:
            at_ms = max(0, self._from[_TIME] - MARGIN_MS)
            begin = max(begin, await offset_at(at_ms))
        if _TIME in self._until and begin < end:
            # RocketMQ 4 answers with the message before, if that is nearer.
            at_ms = max(0, self._until[_TIME] + MARGIN_MS)
            end = min(end, await offset_at(at_ms) + 1)
        return begin, end
