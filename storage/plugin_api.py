"""What an entry point of `ropeway.logs` is, and the log that it opens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from ropeway.storage.api import Log


class NodeLog(Log, Protocol):
    """A log that one node has, as plugins open it."""

    def need(self, topic: str, number: int, offset: int | None) -> None:
        """Keep a partition's records from an offset on, whatever retention says.

        None ends that. It is not kept over a restart.
        """


OpenLog = Callable[[str], Awaitable[NodeLog]]
"""What an entry point of `ropeway.logs` is: it opens the log at a URL, whose scheme is
the entry point's name, and makes it where there is none.

Retention is the log's own, and leaves what is younger than three days in topics whose
names begin with `rmq_sys_`. It raises `LogError` where the log cannot be opened."""
