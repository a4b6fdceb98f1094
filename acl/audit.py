"""The audit log: what was refused, to whom, and by which rule; bounded in its rate.

Lines go to the logger `ropeway.audit`, and to a file where one is configured. What is
beyond the rate is counted, and the count is in the next line that is written.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

import msgspec
import structlog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_TEXT = 200
"""Of what clients say, no more goes into a line."""
MOST_SHOWN = 64
"""Longer access keys are no names of accounts."""
_SHOWN_OF_LONGER = 8
_BURST = 60
"""So many lines may come at once."""

_log = structlog.get_logger("ropeway.audit")


class Audit:
    """Writes refusals.

    Args:
        per_minute: Lines that are written at most, on average.
        clock: Seconds that only go up.
        now_ms: Milliseconds since 1970.
        path: A file for lines of JSON; it is appended to.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
        path: Path | None = None,
    ) -> None:
        self._per_s = per_minute / 60
        self._clock = clock
        self._now_ms = now_ms
        self._burst = float(min(_BURST, per_minute))
        self._left = self._burst
        self._at = clock()
        self._file: IO[bytes] | None = None
        if path is not None:
            self._file = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115
        self.refused = 0
        """Refusals since the start."""
        self.left_out = 0
        """Those of them that were not written."""
        self._left_out_since = 0

    def write(self, event: str, **values: str | int | None) -> None:
        """Write a line, unless there are too many."""
        self.refused += 1
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            self.left_out += 1
            self._left_out_since += 1
            return
        self._left -= 1
        line = {
            key: _shown(value)
            for key, value in values.items()
            if value is not None and value != ""
        }
        if self._left_out_since:
            line["left_out"] = self._left_out_since
            self._left_out_since = 0
        _log.warning(event, **line)
        if self._file is not None:
            whole = {"time_ms": self._now_ms(), "event": event, **line}
            try:
                self._file.write(msgspec.json.encode(whole) + b"\n")
            except OSError as error:
                _log.error("the audit file cannot be written", reason=str(error))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _private(path: str, flags: int) -> int:
    """Open a file; one that is made is its owner's alone, whatever the umask is."""
    return os.open(path, flags, 0o600)


def _shown(value: str | int) -> str | int:
    """A value of one line, that no terminal takes for a command."""
    if isinstance(value, int):
        return value
    return ascii(value[:MAX_TEXT])[1:-1]


def abridged(access_key: str) -> str:
    """An access key, if it is a name: a token is a secret, but for how it begins."""
    if len(access_key) <= MOST_SHOWN:
        return access_key
    return f"{access_key[:_SHOWN_OF_LONGER]}... of {len(access_key)} characters"
