"""Seeded bugs: the product made wrong on purpose, to see that the checks find it.

Each is a patch that lasts for one run.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kazoo.client import TransactionRequest

from ropeway.common.clock import now_ms
from ropeway.gateway import composition
from ropeway.gateway.connection import Connection
from ropeway.gateway.listener import Listener
from ropeway.gateway.node.timer.intake import Intake
from ropeway.gateway.node.timer.timer import Timer
from ropeway.gateway.node.transactions.checks import Checks
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.node.transactions.end_transaction import Ending
from ropeway.gateway.pop.acks import Acks
from ropeway.gateway.pop.in_flight import Batch, PopQueue
from ropeway.gateway.pop.pop_dispatch import PopDispatch
from ropeway.gateway.pop.revive import Revive
from ropeway.routing.zookeeper.brokers import Brokers
from ropeway.routing.zookeeper.changes import Changes
from ropeway.routing.zookeeper.session import Session
from ropeway.storage.file import lock, recovery, segment, segments, writer
from ropeway.storage.file.catalog import Catalog
from ropeway.storage.file.log import FileLog
from ropeway.storage.file.offsets import FileOffsets
from ropeway.storage.file.partition import FilePartition
from tests.simulation import pulsar_bugs
from tests.simulation.seeded import replaced, wrapped

if TYPE_CHECKING:
    from tests.simulation.seeded import Bug


def answer_before_sync(real: Any) -> Any:
    """Answer when the block was written, and sync it then."""

    def write_away(self: Any, call: Any, segment: Any, block: Any, runs: Any) -> None:
        try:
            writer.write_block(segment, [block.header, block.body])
        except OSError as error:
            call(self._not_written, runs, error)
            return
        call(self._written_away, segment, block, runs)
        writer.sync_data(segment.descriptor)

    del real
    return write_away


def answer_failed_writes(real: Any) -> Any:
    """Say of what could not be written that it is stored."""
    return lambda partition, run, *_: real(partition, run)


def lose_revive(_real: Any) -> Any:
    """Store nothing again, and say that it was."""

    async def bring(self: Any, *_: Any, **__: Any) -> set[int]:
        return set()

    return bring


def forget_acknowledgement(_real: Any) -> Any:
    """Answer an acknowledgement, and do nothing."""
    return lambda *_: True


def deliver_early(real: Any) -> Any:
    """Take the time for a second and a half later than it is."""

    def begin(self: Any, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        clock = self._clock
        self._clock = lambda: clock() + 1500

    return begin


def note_before_delivery(real: Any) -> Any:
    """Note that messages were delivered before they are."""

    async def visit(
        self: Any, partition: Any, entries: Any, gone: Any, read_to: int
    ) -> float:
        await self._note(entries, set(), read_to)
        await self._offsets.flush()
        result: float = await real(self, partition, entries, gone, read_to)
        return result

    return visit


def renumber_after_recovery(real: Any) -> Any:
    """Go on one offset further than a queue has come, once it was opened again."""

    def open_partition(self: Any, topic: str, number: int) -> Any:
        partition = real(self, topic, number)
        if partition.end:
            partition.end = partition.next_offset = partition.end + 1
        return partition

    return open_partition


def commit_twice(real: Any) -> Any:
    """Store a committed message twice, now and then."""

    def commit(self: Any, half: Any, named_id: int, done: Any) -> None:
        if half.origin % 5 == 0:
            real(self, half, named_id, lambda _error: None)
        real(self, half, named_id, done)

    return commit


def commit_what_is_rolled_back(real: Any) -> Any:
    """Take each tenth roll-back for a commit."""

    def end(self: Any, half: Any, how: Any, named_id: int, done: Any) -> Any:
        if how is End.ROLLED_BACK and half.origin % 10 == 0:
            how = End.COMMITTED
        return real(self, half, how, named_id, done)

    return end


def answer_twice(real: Any) -> Any:
    """Send each hundredth answer twice."""
    count = 0

    def respond(self: Any, *data: Any) -> None:
        nonlocal count
        count += 1
        if data and count % 100 == 0:
            self.push(*data)
        real(self, *data)

    return respond


def forget_an_answer(real: Any) -> Any:
    """Send each two hundredth answer not at all."""
    count = 0

    def respond(self: Any, *data: Any) -> None:
        nonlocal count
        count += 1
        real(self, *(() if count % 200 == 0 else data))

    return respond


def commit_too_far(real: Any) -> Any:
    """Write down that a group has come one message further than it said."""

    def commit(self: Any, group: str, topic: str, queue_id: int, offset: int) -> None:
        real(self, group, topic, queue_id, offset + (group == "readers"))

    return commit


def cut_one_block_more(real: Any) -> Any:
    """End a torn segment a block before the one that is torn."""

    def cut(segment: Any, place: int, report: Any) -> None:
        real(segment, max(0, place - 512), report)

    return cut


def forget_watches(_real: Any) -> Any:
    """Do nothing when ZooKeeper tells of a change."""
    return lambda _self, _call: lambda _event: None


def accept_an_old_session(real: Any) -> Any:
    """Take a new session for the one before."""

    def on_connected(self: Any, session_id: int, *args: Any) -> None:
        self.id = session_id
        real(self, session_id, *args)

    return on_connected


def believe_a_lost_change(_real: Any) -> Any:
    """Take a change for made of which nothing was heard."""

    async def was_made(*_: Any) -> bool:
        return True

    return was_made


def ignore_versions(real: Any) -> Any:
    """Replace what a node of ZooKeeper holds, whatever it is."""
    return lambda self, path, value, _version=-1: real(self, path, value)


def tear_a_batch(real: Any) -> Any:
    """Leave the last of some records out that are stored together."""
    count = 0

    def append(self: Any, records: Any, store_ms: int, done: Any) -> None:
        nonlocal count
        count += len(records) > 1
        torn = len(records) > 1 and count % 5 == 0
        real(self, records[:-1] if torn else records, store_ms, done)

    return append


def read_one_too_far(real: Any) -> Any:
    """Begin each fiftieth read a message too late."""
    count = 0

    def read_now(self: Any, offset: int, *more: Any) -> Any:
        nonlocal count
        count += 1
        late = count % 50 == 0 and offset + 1 < self.end
        return real(self, offset + late, *more)

    return read_now


def hand_out_again(real: Any) -> Any:
    """Have each twentieth pop not move its queue on."""
    count = 0

    def took(
        self: Any, taken: Any, place: Any, queue: Any, start: int, *a: Any
    ) -> None:
        nonlocal count
        count += 1
        real(self, taken, place, queue, start, *a)
        if count % 20 == 0:
            queue.next_offset = start

    return took


def deliver_twice(real: Any) -> Any:
    """Deliver what is due, and again."""

    async def visit(self: Any, *args: Any) -> float:
        await real(self, *args)
        result: float = await real(self, *args)
        return result

    return visit


def forget_what_waits(real: Any) -> Any:
    """Begin an index of timers at the end of what waits."""

    async def begin(self: Any, *args: Any) -> int:
        done_ms: int = await real(self, *args)
        self.next_offset = self._partition.end
        return done_ms

    return begin


def pass_over_what_is_late(real: Any) -> Any:
    """Count a timed message as delivered whose time is past when it is read."""

    async def catch_up(self: Any, done_ms: int) -> int:
        await real(self, done_ms)
        return done_ms

    return catch_up


def oversleep(real: Any) -> Any:
    """Sleep four seconds longer than until something is due."""

    async def sleep(self: Any, sleep_s: float) -> None:
        await real(self, sleep_s)
        if sleep_s > 0.5:
            await asyncio.sleep(4.0)

    return sleep


def look_too_seldom(real: Any) -> Any:
    """Look at what is due each eighth time."""
    count = 0

    async def look(self: Any, *args: Any) -> None:
        nonlocal count
        count += 1
        if count % 8 == 0:
            await real(self, *args)

    return look


BUGS: dict[str, Bug] = {
    "skip fsync": replaced(writer, "sync_data", lambda _descriptor: None),
    "answer before sync": wrapped(writer.Writer, "_write_away", answer_before_sync),
    "answer failed writes": wrapped(FilePartition, "answer", answer_failed_writes),
    "skip the sync of names": replaced(
        segment, "sync_directory", lambda _directory: None
    ),
    "skip the sync of topics": replaced(Catalog, "sync", lambda _: None),
    "seal without sync": replaced(segments, "sync_data", lambda _descriptor: None),
    "keep what recovery found unsynced": replaced(
        recovery, "sync_data", lambda _descriptor: None
    ),
    "renumber after recovery": wrapped(
        FileLog, "_open_partition", renumber_after_recovery
    ),
    "take all damage for a torn end": replaced(recovery, "_is_torn", lambda *_: True),
    "let two processes in": replaced(
        lock, "fcntl", SimpleNamespace(flock=lambda *_: None, LOCK_EX=0, LOCK_NB=0)
    ),
    "cut too much": wrapped(recovery, "_cut", cut_one_block_more),
    "lose a revive": wrapped(Revive, "bring", lose_revive),
    "forget an acknowledgement": wrapped(Acks, "done", forget_acknowledgement),
    "give out too early": replaced(
        Batch,
        "visible_ms",
        property(lambda self: self.pop_ms + self.invisible_ms // 3),
    ),
    "pass what is in hand": replaced(
        PopQueue, "done_to", property(lambda self: self.next_offset)
    ),
    "deliver early": wrapped(Timer, "__init__", deliver_early),
    "note before delivery": wrapped(Timer, "_visit", note_before_delivery),
    "commit twice": wrapped(Ending, "_commit", commit_twice),
    "commit what is rolled back": wrapped(Ending, "end", commit_what_is_rolled_back),
    "answer twice": wrapped(Connection, "respond", answer_twice),
    "forget an answer": wrapped(Connection, "respond", forget_an_answer),
    "commit too far": wrapped(FileOffsets, "commit", commit_too_far),
    "forget who has left": replaced(Listener, "left", lambda *_: None),
    "forget watches": wrapped(Session, "watcher", forget_watches),
    "accept an old session": wrapped(Session, "_on_connected", accept_an_old_session),
    "forget that a session ended": replaced(Brokers, "end_session", lambda _: None),
    "believe a lost change": wrapped(Changes, "_was_made", believe_a_lost_change),
    "tear a batch": wrapped(FilePartition, "append", tear_a_batch),
    "read too far": wrapped(FilePartition, "read_now", read_one_too_far),
    "hand out again": wrapped(PopDispatch, "_took", hand_out_again),
    "pop by the time of day": replaced(composition, "monotonic_ms", now_ms),
    "oversleep what is due": wrapped(Timer, "_sleep", oversleep),
    "ask how it ended too seldom": wrapped(Checks, "look", look_too_seldom),
    "deliver twice": wrapped(Timer, "_visit", deliver_twice),
    "forget what waits": wrapped(Intake, "begin", forget_what_waits),
    "pass over what is late": wrapped(Intake, "catch_up", pass_over_what_is_late),
    "ignore versions": wrapped(TransactionRequest, "set_data", ignore_versions),
}
"""By name."""
ALL = BUGS | pulsar_bugs.BUGS
"""Those of nodes on Pulsar, too."""
