"""A consumer on a connection: what it asks, and what it does with what comes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ropeway.storage.pulsar.authentication import Unauthenticated
from ropeway.storage.pulsar.commands import (
    Ack,
    CloseConsumer,
    Delivery,
    Flow,
    MessageId,
    Seek,
    Subscribe,
    Success,
)
from ropeway.storage.pulsar.connection import Connection
from ropeway.storage.pulsar.entry import Entry, Position
from ropeway.storage.pulsar.errors import (
    EntryError,
    PulsarError,
    PulsarUnavailableError,
)
from ropeway.storage.pulsar.subscription import Seat
from tests.remoting import looped
from tests.storage.pulsar.broker import TOPIC, FakeBroker, running
from tests.storage.pulsar.golden import FRAMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TIMEOUT_S = 60


class Sitting:
    """A seat, and what it passed on."""

    def __init__(self, broker: FakeBroker, connection: Connection) -> None:
        self.broker = broker
        self.entries: list[Entry] = []
        self.errors: list[PulsarError] = []
        self.told = asyncio.Event()
        self.seat = Seat(connection, "name", self.take, self.left)

    def take(self, _seat: Seat, entry: Entry) -> None:
        self.entries.append(entry)
        self.told.set()

    def left(self, _seat: Seat, error: PulsarError) -> None:
        self.errors.append(error)
        self.told.set()

    async def comes(self, name: str) -> None:
        """Let a captured frame come, whose consumer is 0, as if it were for us."""
        consumers = self.seat.connection.consumers
        consumers[0] = consumers[self.seat._id]
        self.broker.peers[0].transport.write(FRAMES[name])
        await self.told.wait()
        self.told.clear()


@contextlib.asynccontextmanager
async def sitting() -> AsyncIterator[Sitting]:
    async with running() as broker:
        broker.answers[CloseConsumer] = lambda _, asked: Success(asked.request_id)
        broker.answers[Seek] = lambda _, asked: Success(asked.request_id)
        host, port = broker.url.removeprefix("pulsar://").split(":")
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(Unauthenticated(), None, 60, lambda _: None),
            host,
            int(port),
        )
        await connection.handshake(TIMEOUT_S)
        yield Sitting(broker, connection)
        connection.abort(PulsarUnavailableError("the test ends"))


@looped
async def test_it_subscribes_alone_without_a_trace_on_the_broker():
    async with sitting() as one:
        await one.seat.subscribe(
            TOPIC, MessageId(3, 4), compacted=True, timeout_s=TIMEOUT_S
        )
        (subscribe,) = one.broker.of(Subscribe)
        assert (subscribe.durable, subscribe.kind) == (False, 0)
        assert (subscribe.start, subscribe.read_compacted) == (MessageId(3, 4), True)
        assert not subscribe.force_topic_creation


@looped
async def test_permits_are_counted_by_messages():
    async with sitting() as one:
        one.seat.grant(10, None)
        await one.comes("Delivery 1")
        assert one.seat.permits == 9
        await one.comes("Delivery 7")
        assert one.seat.permits == 6
        assert [entry.position for entry in one.entries] == [
            Position(9, 0),
            Position(9, 6),
        ]


@looped
async def test_what_is_done_with_is_acknowledged_before_more_is_permitted():
    async with sitting() as one:
        one.seat.grant(5, Position(9, 3))
        (flow,) = await one.broker.wait(Flow, 1)
        (ack,) = one.broker.of(Ack)
        assert ack == Ack(flow.consumer_id, 1, (MessageId(9, 3),))
        assert flow.permits == 5
        assert one.broker.seen.index(ack) < one.broker.seen.index(flow)


@looped
async def test_an_entry_without_readable_metadata_ends_it_with_the_position():
    async with sitting() as one:
        one.broker.peers[0].tell(Delivery(one.seat._id, MessageId(5, 6)))
        await one.told.wait()
        (error,) = one.errors
        assert isinstance(error, EntryError)
        assert str(error).startswith("the entry at 5:6: ")
        await one.broker.wait(CloseConsumer, 1)
        assert one.seat.connection.broken is None


@looped
async def test_nothing_comes_any_more_once_it_was_left():
    async with sitting() as one:
        await one.seat.leave()
        one.broker.peers[0].transport.write(FRAMES["Delivery 1"])
        await one.seat.seek(5, TIMEOUT_S)
        assert (one.entries, one.errors) == ([], [])
        assert one.broker.of(Seek)[0].publish_ms == 5
