"""Which brokers run: each process renews a lease of its own in the shared file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from ropeway.routing.api import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ropeway.routing.database import Database

RENEW_MS = 1000
"""How often a process says that its brokers run."""
LEASE_MS = 5000
"""A broker of which nothing was heard for so long has died; a process that is short
of CPU is late by a second or two."""


class Leases:
    """The brokers of this process, and what is known of others.

    The age of another's lease counts up to the last renewal of our own: where nobody
    can write, nobody is given up. Times count from the start of the machine: what was
    renewed after now was so before it was started again.
    """

    def __init__(self, database: Database, now_ms: Callable[[], int]) -> None:
        self._database = database
        self._now_ms = now_ms
        self._others: dict[str, tuple[Broker, int]] = {}
        """Brokers by name, each with the time of its last renewal."""
        self._own: dict[str, Broker] = {}
        self._renewed_ms = now_ms()

    def running(self) -> Mapping[str, tuple[Broker, ...]]:
        """Every broker that runs, by its name; each has one node here."""
        since_ms = self._renewed_ms - LEASE_MS
        others = {
            name: (broker,)
            for name, (broker, renewed_ms) in self._others.items()
            if since_ms < renewed_ms <= self._now_ms()
        }
        return {**others, **{name: (broker,) for name, broker in self._own.items()}}

    def load(self) -> None:
        """Read what others have said."""
        self._others = {
            name: (msgspec.json.decode(value, type=Broker), renewed_ms)
            for name, value, renewed_ms in self._database.leases()
            if name not in self._own
        }

    def claim(self, broker: Broker) -> tuple[int, int] | None:
        """Say that a broker runs, within a change, unless another process may run it.

        Returns:
            None where it is ours; else the other's process id and last renewal.
        """
        self.load()
        now_ms = self._now_ms()
        other, renewed_ms = self._others.get(broker.name, (broker, 0))
        fresh = 0 <= now_ms - renewed_ms < LEASE_MS
        is_ours = (other.pid, other.incarnation) == (broker.pid, broker.incarnation)
        if not is_ours and fresh and _runs(other.pid):
            return other.pid, renewed_ms
        self._database.renew_lease(broker, now_ms)
        return None

    def own(self, broker: Broker) -> None:
        """Count a broker as ours from now on."""
        self._others.pop(broker.name, None)
        self._own[broker.name] = broker

    def drop(self, name: str, incarnation: str | None) -> bool:
        """Count a broker as gone, of one process or whichever; whether it was ours."""
        own = self._own.get(name)
        if own is None or incarnation not in (None, own.incarnation):
            return False
        del self._own[name]
        return True

    def end(self, name: str, incarnation: str | None) -> None:
        """Take a broker's lease away, within a change, if it is that process's."""
        self.load()
        other, _ = self._others.get(name, (None, 0))
        if other is not None and incarnation in (None, other.incarnation):
            self._others.pop(name)
            self._database.end_lease(name)

    def renew(self) -> list[Broker]:
        """Say that our brokers run, where it is time.

        Returns:
            Those of which another process says so: it came while this one stood still.
        """
        now_ms = self._now_ms()
        if now_ms - self._renewed_ms < RENEW_MS:
            return []
        with self._database.not_waiting_for_the_disk():
            lost = [
                broker
                for broker in self._own.values()
                if not self._database.keep_lease(broker, now_ms, now_ms - LEASE_MS)
            ]
        self._renewed_ms = now_ms
        return lost


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
