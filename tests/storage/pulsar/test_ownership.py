"""What ownership does with each outcome of an opening, and with each kind of loss.

How a partition is opened on Pulsar is a fake here, so that every fault is exact; what
real brokers do is in test_ownership_pulsar.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.api import LogUnavailableError, NoSuchPartitionError, NotReadyError
from ropeway.storage.pulsar import ownership
from ropeway.storage.pulsar.cluster import Cluster
from ropeway.storage.pulsar.end_offsets import EndOffsets
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.entry_reader import Found
from ropeway.storage.pulsar.errors import FencedError, PulsarError, TopicNotFoundError
from ropeway.storage.pulsar.follower import Followed, Follower
from ropeway.storage.pulsar.open_partition import ContestedError, Opened
from ropeway.storage.pulsar.ownership import Ownership
from ropeway.storage.pulsar.pack import encode, peel
from ropeway.storage.pulsar.partition import PartitionContext, PulsarPartition
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.tail import Tail
from ropeway.storage.pulsar.terms import after
from ropeway.storage.pulsar.topic_names import PulsarName
from tests.contracts.log import begin, record
from tests.remoting import looped, until
from tests.storage.pulsar.test_appender import Broker

if TYPE_CHECKING:
    from collections.abc import Callable

TERM = 5
NOTHING: Any = None


class Producer(Broker):
    """A producer that notes whether it was closed, and confirms or not."""

    max_message_bytes = 1 << 20

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.unconfirmed: PulsarError | None = None

    async def confirm(self) -> None:
        if self.unconfirmed is not None:
            raise self.unconfirmed

    async def close(self) -> None:
        self.closed = True


class Unread(Follower):
    """One that follows nothing."""

    closed = False

    async def close(self) -> None:
        self.closed = True


@dataclass
class Rig:
    """An ownership, what it told, and how openings end."""

    taken: list[PulsarPartition] = field(default_factory=list)
    deleted: list[PulsarPartition] = field(default_factory=list)
    forgotten: list[PulsarPartition] = field(default_factory=list)
    asked: list[PulsarPartition] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    followers: list[Unread] = field(default_factory=list)
    losses: list[Callable[[PulsarError], None]] = field(default_factory=list)
    end: int = 7
    newest: Found | None = None
    meanwhile: Callable[[PulsarPartition, int], None] = lambda *_: None
    """Called while a partition is being opened, with how many were before."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()
        self.own = Ownership(
            Cluster(NOTHING, NOTHING),
            SimpleNamespace(forget=self.forgotten.append),  # type: ignore[arg-type]
            PulsarLogSettings(),
            EndOffsets(),
            self.taken.append,
            self.deleted.append,
        )

    async def open_partition(
        self, _cluster: Any, partition: PulsarPartition, *rest: Any
    ) -> Opened:
        before = len(self.asked)
        self.asked.append(partition)
        await self.gate.wait()
        self.losses.append(rest[-1])
        producer: Any = Producer()
        self.producers.append(producer)
        self.meanwhile(partition, before)
        return Opened(producer, TERM, 2, self.end, 40, self.newest)

    async def open_followed(
        self, _client: Any, _admin: Any, partition: PulsarPartition, lost: Any
    ) -> Followed:
        self.asked.append(partition)
        self.losses.append(lost)
        self.meanwhile(partition, len(self.asked) - 1)
        follower = Unread(partition, TERM, lost)
        self.followers.append(follower)
        return Followed(follower, 2, self.end, 40)


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Rig]:
    def make() -> Rig:
        rig = Rig()
        monkeypatch.setattr(ownership, "open_partition", rig.open_partition)
        monkeypatch.setattr(ownership, "open_followed", rig.open_followed)
        return rig

    return make


def partition_of(number: int = 0) -> PulsarPartition:
    name = PulsarName("public", "default", "orders")
    context = PartitionContext(Tail(1 << 20), NOTHING, NOTHING, 64)
    return PulsarPartition("orders", number, name, context)


def is_open(partition: PulsarPartition) -> bool:
    return partition.appender is not None


@looped
async def test_a_partition_is_opened_once_whoever_asks(patched):
    rig = patched()
    one, other = partition_of(0), partition_of(1)
    await asyncio.gather(rig.own.open([one, other]), rig.own.open([one]))
    assert rig.asked == [one, other]
    await rig.own.open([one])
    assert rig.asked == [one, other]
    one.shut("told to")
    await rig.own.open([one])
    assert rig.asked == [one, other, one]


@looped
async def test_an_opened_partition_goes_on_in_its_term_where_it_ended(patched):
    rig = patched()
    pack = encode([([record("6")], 9, None, 1)], 6)
    rig.newest = Found(peel(pack), Position(40, 3), after(TERM - 1, 7))
    partition = partition_of()
    await rig.own.open([partition])
    assert (partition.first, partition.end, partition.oldest_ledger) == (2, 7, 40)
    assert partition.positions.floor(6) == rig.newest.spot
    stored = begin(partition, record("7"), record("8"))
    await asyncio.sleep(0)
    (producer,) = rig.producers
    ((_, sequence_id, count),) = producer.sent
    assert (sequence_id, count) == (after(TERM, 9), 2)
    producer.acknowledge()
    assert await stored == 7
    assert partition.end == 9


@looped
async def test_one_that_cannot_be_opened_does_not_keep_the_others_closed(patched):
    rig = patched()
    bad, good = partition_of(0), partition_of(1)

    def refuse(partition: PulsarPartition, _: int) -> None:
        if partition is bad:
            raise LogUnavailableError("not now")

    rig.meanwhile = refuse
    with pytest.raises(LogUnavailableError, match="not now"):
        await rig.own.open([bad, good])
    assert (is_open(bad), is_open(good)) == (False, True)
    rig.meanwhile = lambda *_: None
    await rig.own.open([bad])
    assert is_open(bad)


@looped
async def test_a_term_that_somebody_else_began_is_tried_again_five_times(patched):
    rig = patched()

    def contest(_: PulsarPartition, before: int) -> None:
        if before < 4:
            raise ContestedError("theirs")

    rig.meanwhile = contest
    partition = partition_of()
    await rig.own.open([partition])
    assert is_open(partition)
    assert len(rig.asked) == 5
    partition.shut("told to")
    rig.asked.clear()

    def always(_: PulsarPartition, _before: int) -> None:
        raise ContestedError("theirs")

    rig.meanwhile = always
    with pytest.raises(ContestedError):
        await rig.own.open([partition])
    assert len(rig.asked) == 5


@looped
async def test_who_is_fenced_while_it_opens_tries_again(patched):
    rig = patched()

    def fence(_: PulsarPartition, before: int) -> None:
        if not before:
            rig.losses[0](FencedError("theirs"))

    rig.meanwhile = fence
    partition = partition_of()
    await rig.own.open([partition])
    assert [one.closed for one in rig.producers] == [True, False]
    assert is_open(partition)
    assert rig.taken == []


@looped
@pytest.mark.parametrize("state", ["gone", "closed", "lost"])
async def test_one_that_is_lost_while_it_opens_stays_closed(patched, state):
    rig = patched()

    def lose(partition: PulsarPartition, _: int) -> None:
        if state == "lost":
            rig.losses[0](PulsarError("went away"))
        else:
            setattr(partition, state, True)

    rig.meanwhile = lose
    partition = partition_of()
    with pytest.raises(LogUnavailableError, match="was lost while it opened"):
        await rig.own.open([partition])
    assert [one.closed for one in rig.producers] == [True]
    assert not is_open(partition)
    assert (rig.taken, rig.deleted) == ([], [])


@looped
@pytest.mark.parametrize("follows", [False, True])
async def test_one_that_ends_earlier_than_it_did_was_made_again(patched, follows):
    rig = patched()
    rig.own.follows = follows
    partition = partition_of()
    partition.end_offset = 7
    await rig.own.open([partition])
    partition.shut("told to")
    partition.end_offset = 8
    with pytest.raises(NoSuchPartitionError, match="ended at 8 and now ends at 7"):
        await rig.own.open([partition])
    assert rig.deleted == [partition]
    assert not is_open(partition)
    opened = rig.followers if follows else rig.producers
    assert [one.closed for one in opened] == [False, True]


@looped
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FencedError("theirs"), "taken"),
        (TopicNotFoundError("none"), "deleted"),
        (PulsarError("went away"), ""),
    ],
    ids=["fenced", "deleted", "else"],
)
@pytest.mark.parametrize("follows", [False, True])
async def test_a_lost_partition_serves_no_more_and_whoever_minds_hears_why(
    patched, error, told, follows
):
    rig = patched()
    rig.own.follows = follows
    partition = partition_of()
    await rig.own.open([partition])
    rig.losses[0](error)
    with pytest.raises(NotReadyError):
        partition.append([record("x")], 1, lambda *_: None)
    assert rig.forgotten == [partition]
    assert rig.taken == [partition] * (told == "taken")
    assert rig.deleted == [partition] * (told == "deleted")
    await rig.own.close()
    assert all(one.closed for one in [*rig.producers, *rig.followers])


@looped
@pytest.mark.parametrize("state", ["gone", "closed"])
async def test_the_loss_of_what_is_over_is_told_to_nobody(patched, state):
    rig = patched()
    partition = partition_of()
    await rig.own.open([partition])
    setattr(partition, state, True)
    rig.losses[0](FencedError("theirs"))
    rig.losses[0](TopicNotFoundError("none"))
    assert (rig.taken, rig.deleted) == ([], [])


@looped
async def test_no_more_than_32_are_opened_at_a_time_and_16_before_they_are_asked_for(
    patched,
):
    rig = patched()
    rig.gate.clear()
    early = [partition_of(number) for number in range(20)]
    await rig.own.open([])
    rig.own.open_early(early)
    await until(lambda: len(rig.asked) == 16)
    wanted = [partition_of(number) for number in range(20, 60)]
    asking = asyncio.ensure_future(rig.own.open(wanted))
    await until(lambda: len(rig.asked) == 32)
    await asyncio.sleep(0.01)
    assert rig.asked == early[:16] + wanted[:16]
    rig.gate.set()
    await asking
    await until(lambda: all(is_open(one) for one in early))
    assert len(rig.asked) == 60


@looped
async def test_opening_early_passes_over_what_is_gone_or_fails(patched):
    rig = patched()
    gone, bad, good = (partition_of(number) for number in range(3))
    gone.gone = True

    def refuse(partition: PulsarPartition, _: int) -> None:
        if partition is bad:
            raise LogUnavailableError("not now")

    rig.meanwhile = refuse
    rig.own.open_early([gone, bad, good])
    await until(lambda: is_open(good))
    assert rig.asked == [bad, good]
    await rig.own.close()


@looped
async def test_who_waits_for_an_opening_that_is_given_up_is_told_so(patched):
    rig = patched()
    rig.gate.clear()
    early, asked = partition_of(0), partition_of(1)
    rig.own.open_early([early])
    waiting = asyncio.ensure_future(rig.own.open([early, asked]))
    await until(lambda: len(rig.asked) == 2)
    await rig.own.stop_opening()
    with pytest.raises(LogUnavailableError, match="not opened any more"):
        await waiting
    rig.gate.set()
    await asyncio.sleep(0.01)
    assert not is_open(early)
    assert not is_open(asked)


@looped
async def test_another_term_begins_only_where_the_owner_is_confirmed(patched):
    rig = patched()
    partition = partition_of()
    await rig.own.reopen(partition)
    assert rig.asked == []
    await rig.own.open([partition])
    await rig.own.reopen(partition)
    assert [one.closed for one in rig.producers] == [True, False]
    assert is_open(partition)
    rig.producers[1].unconfirmed = FencedError("theirs")
    with pytest.raises(LogUnavailableError, match="theirs"):
        await rig.own.reopen(partition)
    assert len(rig.asked) == 2


@looped
async def test_what_is_followed_and_not_read_is_closed_and_what_is_owned_never(patched):
    rig = patched()
    owned, read, watched, idle = (partition_of(number) for number in range(4))
    await rig.own.open([owned])
    rig.own.close_unused([owned])
    assert is_open(owned)
    rig.own.follows = True
    await rig.own.open([read, watched, idle])
    read.read_now(2, 1, 1)
    watched.watch(lambda: None)
    rig.own.close_unused([read, watched, idle])
    assert [is_open(one) for one in (read, watched, idle)] == [True, True, False]
    rig.own.close_unused([read, watched])
    assert [is_open(one) for one in (read, watched)] == [False, True]
    rig.own.stop_following([owned, watched])
    assert [is_open(one) for one in (owned, watched)] == [True, False]
    await rig.own.close()
    assert [one.closed for one in rig.followers] == [True, True, True]
