"""Moments as people write them on a command line, and as they read them."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click


def time_ms(text: str, others: str = "") -> int:
    """Read a moment, in milliseconds since 1970.

    Args:
        text: Those as a number, or a time like `2026-01-31T12:00:00`; of this machine's
            time zone, where it names none.
        others: What else is allowed here, for the complaint.

    Raises:
        BadParameter: It is neither.
    """
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r}; allowed: {others}milliseconds since 1970, or a time "
            "like 2026-01-31T12:00:00"
        ) from error
    local = moment if moment.tzinfo else moment.astimezone()
    return int(local.astimezone(UTC).timestamp() * 1000)


def time_text(time_ms: int) -> str:
    """A moment in this machine's time zone; the number, where no calendar has it."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
    return moment.isoformat(timespec="milliseconds")


_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str) -> int:
    """Read a length of time, in milliseconds.

    Args:
        text: A whole number and its unit, like `15m`.

    Raises:
        BadParameter: It is not that.
    """
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdecimal() and unit in _UNITS_MS):
        raise click.BadParameter(
            f"{text!r}; allowed: a whole number and s, m, h or d, like 15m"
        )
    return int(number) * _UNITS_MS[unit]


if TYPE_CHECKING:
    _Type = click.ParamType[float]
else:
    # No type of click's takes another before 8.4.
    _Type = click.ParamType


class Seconds(_Type):
    """A length of time: seconds, or as of `duration_ms`.

    Args:
        least_s: What it is at least.
        is_open: It is more than that.
    """

    name = "seconds"

    def __init__(self, least_s: float = 0, *, is_open: bool = False) -> None:
        self._least_s, self._is_open = least_s, is_open

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Read a length of time, in seconds."""
        seconds = self._read(value)
        if math.isfinite(seconds) and (
            seconds > self._least_s or (seconds == self._least_s and not self._is_open)
        ):
            return seconds
        limit = f"{'more than' if self._is_open else 'at least'} {self._least_s:g}"
        allowed = (
            f"allowed: seconds, {limit}, or a whole number and s, m, h or d, like 15m"
        )
        raise click.BadParameter(f"{value!r}; {allowed}", ctx, param)

    def _read(self, value: str | float) -> float:
        try:
            return float(value)
        except ValueError:
            pass
        try:
            return duration_ms(str(value)) / 1000
        except click.BadParameter:
            return math.nan


def past_ms(text: str, others: str = "") -> int:
    """Read a moment, or how long ago it is, in milliseconds since 1970.

    Args:
        text: A moment as of `time_ms`, or a length of time as of `duration_ms`.
        others: What else is allowed here, for the complaint.

    Raises:
        BadParameter: It is neither.
    """
    if text[-1:] in _UNITS_MS and text[:-1].isdecimal():
        return time.time_ns() // 1_000_000 - duration_ms(text)
    return time_ms(text, f"{others}how long ago, like 10m; ")
