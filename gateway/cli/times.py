"""Moments as people write them on a command line, and as they read them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

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
