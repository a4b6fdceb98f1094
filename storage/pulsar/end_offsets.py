"""Where partitions end, kept in the broker's state: retention deletes nothing of that.

key     end/<tenant>/<namespace>/<Pulsar topic>/<partition>, the topic percent-encoded
value   one past the newest record, in decimal
key     begin/..., likewise, where it is not 0
value   the offset of the first record that there was or will be, in decimal

Law: an end is noted once it is stored, and only by the partition's owner. So it is
never beyond the true one, and what it lags behind by stands in the topic itself until
retention takes that, long after.
"""

from __future__ import annotations

import asyncio
import math
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import structlog

from ropeway.storage.api import MAX_PARTITIONS
from ropeway.storage.pulsar.appender import Appender
from ropeway.storage.pulsar.terms import LAST_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ropeway.storage.offsets import Furthest
    from ropeway.storage.pulsar.partition import PulsarPartition
    from ropeway.storage.pulsar.topic_names import PulsarName
    from ropeway.storage.state import State

PREFIX = "end/"
BEGINNING = "begin/"

NOTE_EVERY_S = 3.0
"""How often ends that have moved are noted; RocketMQ's brokers write offsets every
5 s."""

NOTED_AT_ONCE = 500
"""Partitions that are looked at before the event loop does other things."""

FURTHEST_COMMIT = LAST_OFFSET // 2
"""No queue gets so far: a client that commits more is wrong, and offsets that went on
there would soon have no room."""

MOVED_LATELY_S = 600.0
"""A partition whose end has not moved for so long is not in use."""

_log = structlog.get_logger()


def key_of(name: PulsarName, number: int) -> str:
    """The key of a partition's end."""
    return f"{_prefix(name)}{number}"


def _beginning_of(key: str) -> str:
    """The key of where a partition begins, by that of its end."""
    return BEGINNING + key.removeprefix(PREFIX)


@lru_cache(maxsize=1024)
def _prefix(name: PulsarName) -> str:
    return f"{PREFIX}{name.path}/"


class EndsElsewhere(Protocol):
    """What other brokers have noted, of queues that were theirs."""

    async def end(self, key: str) -> int | None:
        """The end that one of them has noted; None where none has.

        Raises:
            LogUnavailableError: It cannot be known now.
        """

    async def close(self) -> None:
        """Read no more."""


class EndOffsets:
    """Notes where the partitions of a broker end, and knows it when they are opened.

    Before `keep` it knows nothing: then a partition ends where its topic says.
    """

    def __init__(self) -> None:
        self.misfits = 0
        """How often an end did not fit what is known of it."""
        self._begins: dict[str, int] = {}
        """Where partitions begin that were made here, by the keys of their ends."""
        self._moved_s: dict[str, float] = {}
        """When ends that another node noted have moved last."""
        self._state: State | None = None
        self._furthest: Furthest = _nobody
        self._elsewhere: EndsElsewhere | None = None
        self._task: asyncio.Task[None] | None = None

    def keep(
        self,
        state: State,
        partitions: Callable[[], Iterable[PulsarPartition]],
        elsewhere: EndsElsewhere,
        every_s: float = NOTE_EVERY_S,
    ) -> None:
        """Note ends from now on, while this node leads.

        Args:
            state: The broker's; it stays the caller's.
            partitions: Tells which are open now.
            elsewhere: Asked about a partition of which neither its topic nor the state
                tells anything; closed with this.
            every_s: How often.
        """
        self._state = state
        self._elsewhere = elsewhere
        state.watch(PREFIX, self._changed)
        self._task = asyncio.ensure_future(self._run(partitions, every_s))

    def compare_with(self, furthest: Furthest) -> None:
        """Know what groups have committed."""
        self._furthest = furthest

    async def close(self) -> None:
        """Note nothing any more."""
        self._state = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._elsewhere is not None:
            await self._elsewhere.close()

    async def at_least(
        self, partition: PulsarPartition, end: int, *, told: bool
    ) -> int:
        """Where a partition goes on that is being opened; says so if that is not `end`.

        Args:
            partition: Which one.
            end: Where it ends by its topic, and what Pulsar knows of its owners.
            told: Whether an entry says so, and not only that it is there or behind.

        Raises:
            LogUnavailableError: The states of other brokers cannot be read now.
        """
        key = key_of(partition.name, partition.number)
        # So it was told, and nothing is missing before that.
        end = max(end, self.begin(partition) or 0)
        noted = self._noted(key)
        if noted is None and not told and self._elsewhere is not None:
            noted = await self._elsewhere.end(key)
        committed, group = self._furthest(partition.topic, partition.number) or (0, "")
        # What was trimmed was there.
        at_least = max(end, noted or 0, partition.floor)
        if committed > at_least:
            # A commit is a client's word. It counts where there is no other.
            counts = not told or noted is None
            if counts and committed <= FURTHEST_COMMIT:
                at_least = committed
            else:
                self.misfits += 1
                _log.error(
                    "group has committed an offset beyond the end; it gets nothing "
                    "that comes before that offset",
                    partition=partition.full_name,
                    group=group,
                    committed=committed,
                    end=at_least,
                )
        if at_least > end:
            self.misfits += 1
            _log.error(
                "Pulsar has lost or deleted the newest messages of a partition; "
                "offsets go on where they were",
                partition=partition.full_name,
                end_of_topic=end,
                noted_end=noted,
                committed=committed,
                group=group,
                end=at_least,
            )
        return at_least

    def begin(self, partition: PulsarPartition) -> int | None:
        """Where a partition was told to begin; None where that is not known."""
        key = key_of(partition.name, partition.number)
        if (begin := self._begins.get(key)) is not None or self._state is None:
            return begin
        key = _beginning_of(key)
        return decode_end(key, self._state.get(key))

    async def put_begins(self, name: PulsarName, begins: Mapping[int, int]) -> None:
        """Have partitions begin at offsets that are opened then for the first time.

        Raises:
            LogUnavailableError: The state cannot keep it now; nothing is known.
        """
        keys = {key_of(name, number): begin for number, begin in begins.items()}
        state = self._state
        if state is not None and state.leading:
            for key, begin in keys.items():
                state.put(_beginning_of(key), str(begin))
                state.put(key, str(begin))
            await state.flush()
        self._begins |= keys

    def in_use(self, partitions: Iterable[PulsarPartition]) -> list[PulsarPartition]:
        """Those that are read here or have grown while another node led, latest first.

        Of most queues of many topics nothing was ever noted: nobody uses them.
        """
        since_s = time.monotonic() - MOVED_LATELY_S
        used: list[tuple[float, PulsarPartition]] = []
        name, prefix = None, ""
        for one in partitions:
            if one.name is not name:
                name, prefix = one.name, _prefix(one.name)
            moved_s = self._moved_s.get(f"{prefix}{one.number}", -math.inf)
            if moved_s > since_s or one.watchers or one.was_read:
                used.append((moved_s, one))
        used.sort(key=lambda one: one[0], reverse=True)
        return [one for _, one in used]

    def noted(self, partition: PulsarPartition) -> int | None:
        """The end of a partition that is not open; None where this node follows."""
        if self._state is None or not self._state.leading:
            return None
        if partition.noted_end < 0:
            key = key_of(partition.name, partition.number)
            partition.noted_end = self._noted(key) or 0
        return partition.noted_end

    def _changed(self, key: str, value: str | None) -> None:
        if value is None:
            self._moved_s.pop(key, None)
        else:
            self._moved_s[key] = time.monotonic()

    def note(self, partition: PulsarPartition) -> None:
        """Put a partition's end into the state, if this node leads and it has moved."""
        end, state = partition.end_offset, self._state
        if end == partition.noted_end or state is None or not state.leading:
            return
        partition.noted_end = end
        key = key_of(partition.name, partition.number)
        if self._noted(key) != end:
            state.put(key, str(end))

    def forget(self, name: PulsarName) -> None:
        """Know nothing of a topic that is deleted; nothing where this node follows."""
        state = self._state
        leading = state is not None and state.leading
        for number in range(MAX_PARTITIONS):
            key = key_of(name, number)
            self._begins.pop(key, None)
            for one in (key, _beginning_of(key)):
                if state is not None and leading and state.get(one) is not None:
                    state.put(one, None)

    async def flush(self) -> None:
        """Return when the state keeps what was noted and forgotten.

        Raises:
            LogUnavailableError: It cannot be kept now.
        """
        if self._state is not None and self._state.leading:
            await self._state.flush()

    def _noted(self, key: str) -> int | None:
        if self._state is None:
            return None
        return decode_end(key, self._state.get(key))

    async def _run(
        self, partitions: Callable[[], Iterable[PulsarPartition]], every_s: float
    ) -> None:
        while True:
            await asyncio.sleep(every_s)
            for count, partition in enumerate(partitions(), 1):
                if isinstance(partition.appender, Appender):
                    self.note(partition)
                if count % NOTED_AT_ONCE == 0:
                    await asyncio.sleep(0)


def decode_end(key: str, value: str | None) -> int | None:
    """The end that a fact tells; None where it tells none."""
    if value is None:
        return None
    if value.isascii() and value.isdigit() and len(value) <= len(str(LAST_OFFSET)):
        return min(int(value), LAST_OFFSET + 1)
    _log.warning(
        "end that cannot be read left out",
        key=key,
        value=value,
        allowed=f"0 to {LAST_OFFSET + 1}",
    )
    return None


def _nobody(_topic: str, _number: int) -> None:
    """No group is known."""
