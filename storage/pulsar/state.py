"""A broker's state on Pulsar: one compacted topic, which one node writes and all read.

Law: a node leads from when it has fenced the topic, read all that was written before,
and outwaited the lease of the leader before it, unless that one said that it ended.
docs/architecture/pulsar-state.md says why that is enough.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import structlog

from ropeway.common.clock import now_ms
from ropeway.common.tasks import Tasks
from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.errors import FencedError, PulsarError
from ropeway.storage.pulsar.state_compaction import Compaction
from ropeway.storage.pulsar.state_entry import LEADER, MAX_FACT_BYTES, TERM
from ropeway.storage.pulsar.state_replica import Replica
from ropeway.storage.pulsar.state_term import Term
from ropeway.storage.pulsar.topic_names import PARTITION

if TYPE_CHECKING:
    from ropeway.storage.pulsar.cluster import Cluster
    from ropeway.storage.pulsar.entry import Entry
    from ropeway.storage.pulsar.state_entry import Change, Leader
    from ropeway.storage.state import Changed, Deposed

PREFIX = "__ropeway_state-"
RESERVED = "/"
"""No fact's key begins so: such keys are the state's own."""
LEASE_S = 0.5
"""What a take-over costs after a crash. Where ZooKeeper answers, its session proves who
leads; where it does not, requests wait while Pulsar is slower than that."""
FLUSH_INTERVAL_S = 0.5
"""What a crash may take back. RocketMQ's brokers write offsets every 5 s."""
CLOCKS = 1.01
"""Clocks of two machines may differ in pace by less than that."""
LEAST_RECORDS = 100_000
"""A start that reads so many takes less than a second."""
MISSING = object()

_log = structlog.get_logger()


def state_topic(space: str, broker: str) -> str:
    """The full name of the topic of a broker's state, in `tenant/namespace`."""
    name = quote(broker, safe="").replace(PARTITION, "%2Dpartition-")
    return f"persistent://{space}/{PREFIX}{name}"


class StateSettings(NamedTuple):
    """How patient a broker's state is."""

    lease_s: float = LEASE_S
    """For how long a leader is certain that it is the leader."""
    flush_interval_s: float = FLUSH_INTERVAL_S
    """How long a put may wait for `flush`."""
    compact_after: int = LEAST_RECORDS
    """Records that a start may read at least, before they are compacted."""


async def open_state(
    cluster: Cluster,
    topic: str,
    node: str,
    deposed: Deposed,
    settings: StateSettings | None = None,
) -> PulsarState:
    """Open a broker's state as a follower that has read all there is.

    Args:
        cluster: Has it; it stays the caller's.
        topic: As `state_topic` names it; it is made where there is none.
        node: Who we are, among the broker's nodes.
        deposed: Called when another node took the lead from this one.
        settings: The defaults, where it is None.

    Raises:
        LogUnavailableError: Pulsar does not answer, or refuses.
    """
    state = PulsarState(cluster, topic, node, deposed, settings or StateSettings())
    await state.open()
    return state


class PulsarState:
    """Facts of one broker; see `storage.state` for what it promises."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        node: str,
        deposed: Deposed,
        settings: StateSettings,
    ) -> None:
        admin, client = cluster
        self.topic = topic
        self._client = client
        self._admin = admin
        self._node = node
        self._deposed = deposed
        self._lease_s = settings.lease_s
        self._interval_s = settings.flush_interval_s
        self._compaction = Compaction(admin, topic, settings.compact_after)
        self._replica = Replica(client, topic, self._claim, self._tell)
        self._term: Term | None = None
        """Open from before this node leads until after."""
        self._before: Leader | None = None
        """Who led before our term."""
        self._announced = False
        """What says that our term began was read back."""
        self._leading = False
        self._lost_puts = False
        self._watchers: list[tuple[str, Changed]] = []
        self._turn = asyncio.Lock()
        self._ends = Tasks()
        self._closed = False

    async def open(self) -> None:
        """Make the topic where there is none, and read it; see `open_state`."""
        await self._make_topic()
        try:
            await self._replica.open()
        except PulsarError as error:
            raise self._unavailable(error) from error

    @property
    def leading(self) -> bool:
        """Whether this node writes, as far as it knows."""
        return self._leading

    @property
    def held_until_s(self) -> float:
        """Until then no other node can lead; see `storage.state`."""
        return self._term.held_until_s if self._leading and self._term else 0.0

    def get(self, key: str) -> str | None:
        """The value of a key; None where it has none."""
        if self._term is not None:
            change = self._term.ahead.get(key, MISSING)
            if change is not MISSING:
                return change if type(change) is str else None
        return self._replica.facts.values.get(key)

    def items(self, prefix: str) -> list[tuple[str, str]]:
        """All keys that begin so, with their values, sorted; looks at every key."""
        found = {
            key: value
            for key, value in self._replica.facts.values.items()
            if key.startswith(prefix)
        }
        for key, change in self._term.ahead.items() if self._term else ():
            if type(change) is str and key.startswith(prefix):
                found[key] = change
            else:
                found.pop(key, None)
        return sorted(found.items())

    def put(self, key: str, value: str | None) -> None:
        """Set a key's value, or delete it; see `storage.state`."""
        term = self._term
        if not self._leading or term is None:
            raise LogUnavailableError(f"{self.topic}: node {self._node} does not lead")
        size = len(key.encode()) + (len(value.encode()) if value is not None else 0)
        if not key or key[0] == RESERVED:
            raise ValueError(
                f"key {key!r}; allowed: one or more characters, the first not a slash"
            )
        if size > MAX_FACT_BYTES:
            raise ValueError(f"fact of {size} bytes; allowed: {MAX_FACT_BYTES}")
        term.put(key, now_ms() if value is None else value)

    def watch(self, prefix: str, changed: Changed) -> None:
        """Call `changed` for each change that this node did not put."""
        self._watchers.append((prefix, changed))

    async def flush(self) -> None:
        """Return when all puts so far are kept; see `storage.state`."""
        if self._leading and self._term is not None:
            try:
                await self._term.flush()
            except PulsarError as error:
                self._lost_puts = False
                raise self._unavailable(error) from error
        if self._lost_puts:
            self._lost_puts = False
            raise LogUnavailableError(
                f"{self.topic}: another node leads; the last changes are taken back"
            )

    async def take_over(self) -> None:
        """Become the leader; see `storage.state`."""
        async with self._turn:
            if self._leading:
                return
            if self._closed:
                raise LogUnavailableError(f"{self.topic} is closed")
            begun_s = time.monotonic()
            term = self._term = Term(
                self._client,
                self.topic,
                self._node,
                self._lease_s,
                self._interval_s,
                self._lost,
            )
            try:
                await self._begin(term)
                # What was read in the same moment may have ended it.
                term.check()
            except BaseException as error:
                self._term = None
                await term.close()
                if isinstance(error, PulsarError):
                    raise self._unavailable(error) from error
                raise
            self._leading, self._lost_puts = True, False
            _log.info(
                "state taken over",
                topic=self.topic,
                node=self._node,
                before=self._before.node if self._before else None,
                seconds=round(time.monotonic() - begun_s, 3),
            )
            self._compaction.begin(self._replica.facts, term)

    async def give_up(self) -> None:
        """Flush, and follow; see `storage.state`."""
        async with self._turn:
            term = self._term
            if not self._leading or term is None:
                return
            self._leading = False
            try:
                await term.give_up()
            except PulsarError as error:
                raise self._unavailable(error) from error
            finally:
                self._drop(term)
                await term.close()

    async def close(self) -> None:
        """Give up, and read no more. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.give_up()
        finally:
            await self._replica.close()
            await self._compaction.close()
            await asyncio.gather(*self._ends)

    async def _make_topic(self) -> None:
        """Make it, with the subscription that keeps what is not compacted.

        Without it, the namespace's retention would delete facts that are still true.
        """
        await self._admin.create_plain(self.topic)
        await self._admin.compact(self.topic)

    async def _begin(self, term: Term) -> None:
        if not self._replica.is_settled:
            # The topic may have been deleted.
            await self._make_topic()
            await self._replica.settled()
        self._before, self._announced = None, False
        await term.open(self._replica.newest_sequence_id)
        await self._replica.settled()
        before = self._before
        if before is not None and not before.ended:
            over_s = term.fenced_s + before.lease_s * CLOCKS
            await asyncio.sleep(max(0, over_s - time.monotonic()))
            # It may have been another's turn meanwhile.
            await term.flush()

    def _claim(self, entry: Entry) -> dict[str, Change] | None:
        """What an entry changes, if it is one that this node waits for."""
        term = self._term
        if term is None:
            return None
        if entry.properties.get(TERM) != term.id:
            if entry.sequence_id == term.begins_at:
                # Pulsar keeps one of the two, and may not tell whose.
                term.end(FencedError("another node began the same term"))
            return None
        if entry.sequence_id == term.begins_at:
            self._before, self._announced = self._replica.leader, True
        changes = term.landed(entry)
        if self._leading and self._compaction.is_due(self._replica.facts):
            self._compaction.begin(self._replica.facts, term)
        return changes or None

    def _tell(self, key: str, value: str | None) -> None:
        """Tell watchers of a change in the topic that no put of ours hides."""
        if key == LEADER:
            self._look_for_rival()
            return
        if self._term is not None and key in self._term.ahead:
            return
        for prefix, changed in self._watchers:
            if key.startswith(prefix):
                changed(key, value)

    def _look_for_rival(self) -> None:
        """End when another node says behind us in the topic that it leads."""
        term, leader = self._term, self._replica.leader
        if term is not None and self._announced and leader and leader.term != term.id:
            term.end(FencedError(f"node {leader.node} leads"))

    def _lost(self, error: PulsarError) -> None:
        """The term has ended from outside."""
        term = self._term
        if not self._leading or term is None:
            return
        self._leading = False
        self._drop(term)
        self._ends.start(term.close())
        reason = str(self._unavailable(error))
        _log.warning("state is led by this node no more", reason=reason)
        self._deposed(reason)

    def _drop(self, term: Term) -> None:
        """Go back to what the topic says."""
        self._term = None
        self._lost_puts = bool(term.ahead)
        for key in term.ahead:
            self._tell(key, self._replica.facts.values.get(key))

    def _unavailable(self, error: PulsarError) -> LogUnavailableError:
        return LogUnavailableError(f"{self.topic}: {error}")
