"""Who is not known takes little, and who is known is not kept out by it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import Config
from ropeway.gateway.request_limits import RequestsConfig, UnauthenticatedConfig
from ropeway.gateway.unauthenticated import Reader, Unauthenticated
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import PREFIX, encode_frame
from tests.guarded import ALICE, allow, ask, guarded
from tests.remoting import connect, looped, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
CONFIG = Config(
    requests=RequestsConfig(partial_bytes=100_000),
    unauthenticated=UnauthenticatedConfig(connections=3, partial_bytes=20_000),
)
SEND = allow("Topic:*", "Pub")


class Connection:
    """A connection that remembers that it was closed."""

    def __init__(self, address: str = "127.0.0.1:1") -> None:
        self.address, self.known, self.is_closed = address, False, False

    def abort(self) -> None:
        self.is_closed = True


def frame(header: int, body: int) -> bytes:
    return PREFIX.pack(4 + header + body, header) + bytes(header + body)


def begin(unauthenticated: Unauthenticated, size: int) -> tuple[Connection, Reader]:
    """A connection that has sent so much of a request."""
    connection = Connection()
    reader = Reader(unauthenticated, connection)
    assert reader.feed(frame(0, MIB)[:size]) == []
    return connection, reader


def test_of_too_many_strangers_the_oldest_goes():
    unauthenticated = Unauthenticated(CONFIG, is_guarded=True)
    all_of_them = [begin(unauthenticated, 10)[0] for _ in range(4)]
    assert [one.is_closed for one in all_of_them] == [True, False, False, False]
    unauthenticated.left(all_of_them[2])
    assert not begin(unauthenticated, 10)[0].is_closed
    assert [one.is_closed for one in all_of_them] == [True, False, False, False]


def test_halves_of_requests_of_strangers_share_a_budget_of_their_own():
    unauthenticated = Unauthenticated(CONFIG, is_guarded=True)
    known, reader = begin(unauthenticated, 19_000)
    reader.became_known()
    slow, _ = begin(unauthenticated, 12_000)
    other, _ = begin(unauthenticated, 12_000)
    assert (known.is_closed, slow.is_closed, other.is_closed) == (False, True, False)
    assert unauthenticated.partial.used_bytes == 19_000
    assert unauthenticated.unknown_partial.used_bytes == 12_000


def test_a_request_that_is_whole_is_not_counted_and_small_parts_neither():
    unauthenticated = Unauthenticated(CONFIG, is_guarded=True)
    connection = Connection()
    reader = Reader(unauthenticated, connection)
    data = frame(10, 9000)
    assert reader.feed(data[:5000]) == []
    assert unauthenticated.unknown_partial.used_bytes == 5000
    assert len(reader.feed(data[5000:] + data[:100])) == 1
    assert unauthenticated.unknown_partial.used_bytes == 0
    assert reader.feed(data[100:6000]) == []
    assert unauthenticated.unknown_partial.used_bytes == 6000
    unauthenticated.left(connection)
    assert unauthenticated.unknown_partial.used_bytes == 0


def test_a_stranger_begins_with_a_whole_message_but_with_no_long_header():
    unauthenticated = Unauthenticated(Config(), is_guarded=True)
    assert len(Reader(unauthenticated, Connection()).feed(frame(1000, 4 * MIB))) == 1
    with pytest.raises(FrameError, match="allowed: 65536"):
        Reader(unauthenticated, Connection()).feed(frame(65_537, 0))
    with pytest.raises(FrameError, match="frame of 5242884 bytes; allowed: 4 to 42598"):
        Reader(unauthenticated, Connection()).feed(frame(0, 5 * MIB)[:8])
    known = Reader(unauthenticated, Connection())
    known.became_known()
    assert len(known.feed(frame(250_000, 5 * MIB))) == 1
    with pytest.raises(FrameError, match="header of 262145 bytes; allowed: 262144"):
        known.feed(frame(262_145, 0)[:8])


def test_without_access_control_nobody_is_a_stranger():
    unauthenticated = Unauthenticated(CONFIG, is_guarded=False)
    all_of_them = [begin(unauthenticated, 15_000)[0] for _ in range(6)]
    assert not any(one.is_closed for one in all_of_them)
    assert all(one.known for one in all_of_them)
    assert len(unauthenticated) == 0


@looped
async def test_who_stays_unknown_is_closed_in_time_and_who_is_known_stays(
    tmp_path: Path,
):
    async with guarded(tmp_path, SEND) as (app, client):
        unauthenticated = app.server.unauthenticated
        async with AsyncExitStack() as stack:
            listener = app.server.listeners[0]
            silent, wrong = [
                await stack.enter_async_context(connect(listener)) for _ in range(2)
            ]
            assert (await ask(client, ALICE, sending("t"), b"x")).code == 0
            refused = await ask(wrong, ALICE, sending("t"), b"x", password="wrong-one")
            assert refused.code == ResponseCode.NO_PERMISSION
            assert len(unauthenticated) == 2
            # As if so much time had passed; the sweep comes each second.
            unauthenticated.limits = UnauthenticatedConfig(timeout_ms=1)
            await silent.closed()
            await wrong.closed()
            assert client.is_open
            assert (await ask(client, ALICE, sending("t"), b"x")).code == 0


@looped
async def test_a_connection_may_begin_with_the_longest_message(tmp_path: Path):
    async with guarded(tmp_path, SEND) as (app, _):
        assert app.node.config.limits.message_bytes == 4 * MIB
        async with connect(app.server.listeners[0]) as client:
            sent = await ask(client, ALICE, sending("t"), bytes(4 * MIB))
            assert sent.code == 0
            assert len(app.server.unauthenticated) == 1


@looped
async def test_halves_of_requests_of_strangers_stop_nobody_who_is_known(
    tmp_path: Path,
):
    async with guarded(tmp_path, SEND) as (app, client):
        assert (await ask(client, ALICE, sending("t"), b"x")).code == 0
        listener, budget = (
            app.server.listeners[0],
            app.server.unauthenticated.unknown_partial,
        )
        async with AsyncExitStack() as stack:
            halves = [
                await stack.enter_async_context(connect(listener)) for _ in range(12)
            ]
            for one in halves:
                one.writer.write(frame(100, 4 * MIB)[:-1])
            await until(lambda: sum(not one.is_open for one in halves) >= 4)
            assert budget.used_bytes <= 32 * MIB
            assert (await ask(client, ALICE, sending("t"), b"x")).code == 0
        await until(lambda: budget.used_bytes == 0)


@looped
async def test_a_header_that_is_too_long_ends_its_connection_alone(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        async with connect(app.server.listeners[0]) as other:
            other.writer.write(PREFIX.pack(300_000, 262_145))
            await other.closed()
        assert (await client.ask(sending("t"), b"x")).code == 0


@looped
async def test_who_is_refused_very_often_is_closed_before_all_is_read(tmp_path: Path):
    async with guarded(tmp_path, SEND) as (app, client):
        async with connect(app.server.listeners[0]) as stranger:
            for _ in range(3000):
                stranger.send(sending("t"), b"x", one_way=True)
            await stranger.closed()
        # Who is known and may not is told so each time.
        assert (await ask(client, ALICE, sending("t"), b"x")).code == 0
        codes = {(await ask(client, ALICE, pulling("t"))).code for _ in range(260)}
        assert codes == {ResponseCode.NO_PERMISSION}
        assert (await ask(client, ALICE, sending("t"), b"x")).code == 0


@looped
@pytest.mark.parametrize("known", [True, False])
async def test_answers_that_nobody_asked_for_end_the_connection(
    tmp_path: Path, known: bool
):
    answers = encode_frame(0, 7, flag=1) * 250
    async with (
        guarded(tmp_path, SEND) as (app, _),
        connect(app.server.listeners[0]) as client,
    ):
        if known:
            assert (await ask(client, ALICE, sending("t"), b"x")).code == 0
            for _ in range(3):
                client.writer.write(answers)
                # A request between them begins the count anew.
                assert (await ask(client, ALICE, pulling("t"))).code != 0
        client.writer.write(answers * 2)
        await client.closed()
