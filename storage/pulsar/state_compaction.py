"""Keeps a state's topic short: when Pulsar is to compact it, and what it may forget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.common.clock import now_ms
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from ropeway.storage.pulsar.admin import Admin
    from ropeway.storage.pulsar.state_replica import Facts
    from ropeway.storage.pulsar.state_term import Term

MARKS_KEPT_MS = 7 * 24 * 3600 * 1000
"""A follower that has heard nothing for so long may miss that a key was deleted."""
MOST_RECORDS_PER_KEY = 10
"""Compaction is asked for when a start would read more than that, and than a least."""

_log = structlog.get_logger()


class Compaction:
    """Has a topic compacted when its leader begins, and each time it has grown.

    Args:
        admin: the cluster's.
        topic: its full name.
        least_records: a start may read so many at least.
    """

    def __init__(self, admin: Admin, topic: str, least_records: int) -> None:
        self._admin = admin
        self._topic = topic
        self._least_records = least_records
        self._task: asyncio.Task[None] | None = None

    def is_due(self, facts: Facts) -> bool:
        """Whether the topic has grown too long."""
        most = max(self._least_records, MOST_RECORDS_PER_KEY * len(facts.values))
        return facts.records > most

    def begin(self, facts: Facts, term: Term) -> None:
        """Have Pulsar leave out what was replaced, and forget what was long deleted.

        Args:
            facts: the topic's.
            term: of the leader, who alone does this.
        """
        old_ms = now_ms() - MARKS_KEPT_MS
        old = [key for key, at_ms in facts.marks.items() if at_ms < old_ms]
        if old:
            # An entry that only forgets would vanish whole, perhaps before it is read
            # back; one that says who leads does not.
            term.repeat()
        for key in old:
            term.put(key, None)
        facts.records = len(facts.values)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._ask())

    async def close(self) -> None:
        """Ask for nothing more; what Pulsar has begun goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _ask(self) -> None:
        try:
            await self._admin.compact(self._topic)
        except LogError as error:
            _log.warning("state not compacted", topic=self._topic, reason=str(error))
