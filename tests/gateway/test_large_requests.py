"""Requests that one read of the network does not bring: a turn reads all of one."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ropeway.gateway.request_scheduler import _TURNS_AHEAD
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.busy import Busy
from tests.remoting import connect, looped, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.connection import Connection
    from ropeway.gateway.node.fair_queueing import FairQueue


class Waiting(Busy):
    """A connection of others, which has had its turn when it had one."""

    def take_turn(self, _now: float, _until: float) -> int:
        return 0


def large_request() -> list[bytes]:
    """A send as the network brings it."""
    fields = to_fields(sending("orders"))
    code = RequestCode.SEND_MESSAGE_V2
    frame = encode_frame(code, 77, fields=fields, body=bytes(1 << 20))
    return [frame[at : at + 256_000] for at in range(0, len(frame), 256_000)]


def one_turn(fair_queue: FairQueue) -> Connection:
    """Have a tick with a turn for whoever is next, which is over; say who that was."""
    found = fair_queue._next()
    found.take_turn(0.0, math.inf)
    fair_queue.tick_began += 1
    return found


@asynccontextmanager
async def two_senders(
    directory: Path,
) -> AsyncIterator[tuple[App, Connection, Connection]]:
    """Two connections of a flow that have sent, and wait for turns from now on."""
    async with (
        running(directory) as (app, client),
        connect(app.server.listeners[0]) as second,
    ):
        for asking in (client, second):
            assert (await asking.ask(sending("orders"), b"first")).code == 0
        connection, other = app.server.listeners[0].connections
        fair_queue = app.node.fair_queue
        fair_queue._free, fair_queue.tick_over_at = False, math.inf
        yield app, connection, other


@looped
async def test_a_large_request_is_read_to_its_end_in_a_turn_while_others_wait(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"first")).code == 0
        (connection,) = app.server.listeners[0].connections
        fair_queue = app.node.fair_queue
        partition = app.node.topics.get("orders").partitions[0]
        reads = connection._flow_control
        pieces = large_request()
        # As if this tick had taken long enough.
        fair_queue._free, fair_queue.tick_over_at = False, math.inf
        connection.data_received(pieces[0])
        assert (reads._is_reading, [*connection.flow.with_large]) == (
            False,
            [connection],
        )
        fair_queue.join(Waiting(fair_queue))
        fair_queue._tick()
        assert reads._is_reading
        connection.data_received(pieces[1])
        assert (reads._is_reading, connection.flow.waits) == (True, False)
        # Its turn ends with the tick that comes next.
        fair_queue.join(Waiting(fair_queue))
        fair_queue._tick()
        fair_queue.join(Waiting(fair_queue))
        connection.data_received(pieces[2])
        assert (reads._is_reading, [*connection.flow.with_large]) == (
            False,
            [connection],
        )
        fair_queue._tick()
        for piece in pieces[3:]:
            connection.data_received(piece)
        await until(lambda: partition.end == 2)
        await until(lambda: reads._is_reading)
        assert (await client.ask(sending("orders"), b"last")).code == 0


@looped
async def test_who_has_begun_to_send_a_large_request_goes_on_before_others(
    tmp_path: Path,
):
    async with two_senders(tmp_path) as (app, connection, other):
        fair_queue = app.node.fair_queue
        pieces = large_request()
        for one in (connection, other):
            one.data_received(pieces[0])
        assert one_turn(fair_queue) is connection
        # The rest comes in two parts, each after a turn.
        for part in (pieces[1:3], pieces[3:]):
            for piece in part:
                connection.data_received(piece)
            assert one_turn(fair_queue) is connection
        assert app.node.topics.get("orders").partitions[0].next_offset == 3
        assert one_turn(fair_queue) is other
        assert not fair_queue.is_full(other.flow)
        fair_queue.tick_over_at = 0.0


@looped
async def test_who_sends_a_large_request_in_many_parts_waits_behind_others_again(
    tmp_path: Path,
):
    async with two_senders(tmp_path) as (app, connection, other):
        fair_queue = app.node.fair_queue
        first, *parts = large_request()
        for one in (connection, other):
            one.data_received(first)
        order = [one_turn(fair_queue)]
        for part in (parts[0], *parts[1][: _TURNS_AHEAD + 1]):
            connection.data_received(part if isinstance(part, bytes) else bytes([part]))
            order.append(one_turn(fair_queue))
        assert order == [connection] * (1 + _TURNS_AHEAD) + [other, connection]
        fair_queue.tick_over_at = 0.0
