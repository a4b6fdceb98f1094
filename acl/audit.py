"""The audit log: changes, sign-ins and refusals, a line each; bounded in its rate.

Lines go to the logger `ropeway.audit`, and to a file where one is configured. Refusals
and sign-ins share a budget, for anybody can cause them. Each kind of change has one of
its own, so that nothing else crowds it out. What is beyond a budget is counted, and the
count is in the next line of that budget, or in a line at the end.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

import msgspec
import structlog

from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ropeway.acl.api import Principal, Source

MAX_TEXT = 200
"""Of what clients say, no more goes into a line."""
MAX_ITEMS = 64
"""Likewise of a list or a table; how many are left out is said."""
MOST_SHOWN = 64
"""Longer access keys are no names of accounts."""
CHANGES_PER_MINUTE = 6000
"""More than people make; clients that take back timed messages may come to it."""
ATTEMPTS = "refusals and sign-ins"
"""The budget of what is no change."""
_SHOWN_OF_LONGER = 8
_BURST = 60
"""So many refusals may come at once."""

_log = structlog.get_logger("ropeway.audit")


class _Budget:
    """How many lines may still be written, and how many were not."""

    def __init__(self, per_minute: int, burst: int, now_s: float) -> None:
        self._per_s = per_minute / 60
        self._most = self._left = float(burst)
        self._at_s = now_s
        self.asked = 0
        self.left_out = 0
        self.left_out_since = 0
        """Since the last line that was written."""

    def take(self, now_s: float) -> bool:
        """Whether one more line is written; it is counted if not."""
        self.asked += 1
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._left < 1:
            self.left_out += 1
            self.left_out_since += 1
            return False
        self._left -= 1
        return True

    def told(self) -> int:
        """How many were left out since this was asked last."""
        count, self.left_out_since = self.left_out_since, 0
        return count


class Audit:
    """Writes who changed what, who signed in, and what was refused: an `Auditor`.

    Args:
        per_minute: Refusals and sign-ins that are written at most, on average.
        clock: Seconds that only go up.
        now_ms: Milliseconds since 1970.
        path: A file for lines of JSON; it is appended to.
        changes_per_minute: Changes of one kind that are written at most, on average.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
        path: Path | None = None,
        changes_per_minute: int = CHANGES_PER_MINUTE,
    ) -> None:
        self._clock = clock
        self._now_ms = now_ms
        self._changes_per_minute = changes_per_minute
        self._attempts = _Budget(per_minute, min(_BURST, per_minute), clock())
        self._changes: dict[str, _Budget] = {}
        """By the kind of change: requests with a processor, and a few besides."""
        self._file: IO[bytes] | None = None
        if path is not None:
            self._file = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115
        self.unwritten = 0
        """Lines that the file did not take."""

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """Lines that were wanted, and left out, by `attempt` or `change`."""
        changes = self._changes.values()
        return {
            "attempt": (self._attempts.asked, self._attempts.left_out),
            "change": (
                sum(one.asked for one in changes),
                sum(one.left_out for one in changes),
            ),
        }

    def attempt(self, event: str, **values: str | None) -> None:
        """Write that something was refused, or a sign-in or sign-out: see `Auditor`."""
        if claimed := values.get("claimed"):
            values["claimed"] = abridged(claimed)
        if self._attempts.take(self._clock()):
            self._write(event, values, self._attempts)

    def change(
        self,
        request: str,
        principal: Principal | None,
        source: Source | None,
        resource: str,
        before: Any = None,
        after: Any = None,
        *,
        failure: str = "",
    ) -> None:
        """Write that something was changed, or that a change failed: see `Auditor`.

        A change that failed and changed nothing counts as a refusal does.
        """
        budget = self._attempts
        if not failure or before != after:
            budget = self._changes.get(request) or self._new(request)
        if not budget.take(self._clock()):
            return
        values = {
            "request": request,
            "principal": str(principal) if principal else "",
            "address": source.address if source else "",
            "channel": source.channel.value if source else "",
            "resource": resource,
            "before": before,
            "after": after,
            "reason": failure,
        }
        self._write("change failed" if failure else "changed", values, budget)

    def _new(self, request: str) -> _Budget:
        most = self._changes_per_minute
        budget = self._changes[request] = _Budget(most, most, self._clock())
        return budget

    def _write(
        self, event: str, values: Mapping[str, Any], budget: _Budget | None = None
    ) -> None:
        line = {
            key: shown(value)
            for key, value in values.items()
            if value is not None and value != ""
        }
        if budget is not None and (left_out := budget.told()):
            line["left_out"] = left_out
        tell = _log.info if event in _USUAL else _log.warning
        tell(event, **line)
        if self._file is not None:
            whole = {"time_ms": self._now_ms(), "event": event, **line}
            try:
                self._file.write(msgspec.json.encode(whole) + b"\n")
            except OSError as error:
                self.unwritten += 1
                _log.error("the audit file cannot be written", reason=reason_of(error))

    def close(self) -> None:
        """Say what was left out and is not said yet, and close the file."""
        for name, budget in {ATTEMPTS: self._attempts, **self._changes}.items():
            if budget.left_out_since:
                self._write("left out", {"request": name}, budget)
        if self._file is not None:
            self._file.close()


_USUAL = {"changed", "signed in", "signed out"}


def _private(path: str, flags: int) -> int:
    """Open a file; one that is made is its owner's alone, whatever the umask is."""
    return os.open(path, flags, 0o600)


def shown(value: Any) -> Any:
    """A value of one line, that no terminal takes for a command; cut where it is long.

    Args:
        value: Texts, numbers, and lists and tables of them. Anything else is shown as
            three asterisks.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        text = ascii(value[:MAX_TEXT])[1:-1]
        return text if len(value) <= MAX_TEXT else f"{text}... of {len(value)}"
    if isinstance(value, dict):
        items = list(value.items())
        table = {str(shown(key)): shown(one) for key, one in items[:MAX_ITEMS]}
        return {**table, **({"...": len(items)} if len(items) > MAX_ITEMS else {})}
    if isinstance(value, (list, tuple)):
        some = [shown(one) for one in value[:MAX_ITEMS]]
        return [*some, *([f"... of {len(value)}"] if len(value) > MAX_ITEMS else [])]
    return "***"


def abridged(access_key: str) -> str:
    """An access key, if it is a name: a token is a secret, but for how it begins."""
    if len(access_key) <= MOST_SHOWN:
        return access_key
    return f"{access_key[:_SHOWN_OF_LONGER]}... of {len(access_key)} characters"
