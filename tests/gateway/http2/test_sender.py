"""What is sent: in order, within the windows, and by turns."""

from __future__ import annotations

from ropeway.gateway.http2.frames import (
    DATA,
    HEADERS,
    SETTINGS,
    settings_frame,
    window_frame,
)
from tests.gateway.http2.raw import FIRST, LAST, echoing
from tests.remoting import looped, until

PLENTY = (1 << 31) - 1
INITIAL_WINDOW, FRAME = 4, 5


async def data_of(client, count: int) -> dict[int, int]:
    """Bytes of DATA by streams, until there were so many."""
    found: dict[int, int] = {}
    while sum(found.values()) < count:
        _, _, number, payload = await client.until(DATA)
        assert len(payload) <= 1 << 14
        found[number] = found.get(number, 0) + len(payload)
    return found


@looped
async def test_answers_wait_for_the_windows_and_are_counted():
    async with echoing(begin=False) as (server, client):
        client.begin({INITIAL_WINDOW: 10})
        client.request(1, b"x" * 25)
        assert await data_of(client, 10) == {1: 10}
        assert server.held_bytes == 15
        client.send(window_frame(1, 5))
        assert await data_of(client, 5) == {1: 5}
        assert server.held_bytes == 10
        # Every stream's window is wider with the first.
        client.send(settings_frame({INITIAL_WINDOW: 100}))
        assert await client.answer(1) == (b"x" * 10, {"done": "yes"})
        assert server.held_bytes == 0
        assert not server.receiver.streams


@looped
async def test_a_window_may_become_less_than_none():
    async with echoing(begin=False) as (server, client):
        client.begin({INITIAL_WINDOW: 10})
        client.request(1, b"x" * 25)
        await data_of(client, 10)
        client.send(settings_frame({INITIAL_WINDOW: 0}))
        await client.until(SETTINGS)
        (stream,) = server.receiver.streams.values()
        assert stream.window == -10
        client.send(window_frame(1, 12))
        assert await data_of(client, 2) == {1: 2}
        client.send(window_frame(1, 100))
        assert (await client.answer(1))[0] == b"x" * 13


@looped
async def test_streams_share_a_narrow_connection_by_turns():
    size = 200_000
    async with echoing(begin=False) as (server, client):
        client.begin({INITIAL_WINDOW: PLENTY})
        for number in (1, 3):
            client.request(number, None, "/held")
        await until(lambda: len(server.begun) == 2)
        for stream in server.begun:
            server.sender.whole(stream, FIRST, bytes(size), LAST)
        first = await data_of(client, 65_535)
        assert first == {1: 65_535}
        client.send(window_frame(0, 200_000))
        second = await data_of(client, 200_000)
        assert min(second[1], second[3]) > 60_000
        client.send(window_frame(0, PLENTY - 65_535))
        await data_of(client, 2 * size - 265_535)
        assert server.held_bytes == 0


@looped
async def test_frames_are_as_long_as_the_client_takes():
    async with echoing(begin=False) as (server, client):
        client.begin({INITIAL_WINDOW: PLENTY, FRAME: 1 << 14})
        client.send(window_frame(0, PLENTY - 65_535))
        client.request(1, None, "/held")
        await until(lambda: server.begun)
        server.sender.whole(server.begun[0], FIRST, bytes(40_000), LAST)
        found = [len((await client.until(DATA))[3]) for _ in range(3)]
        assert found == [16_384, 16_384, 7_232]


@looped
async def test_answers_of_one_tick_are_written_together():
    async with echoing() as (server, client):
        writes, write = [], server._transport.write
        server.sender.open(lambda data: (writes.append(data), write(data)))
        for number in (1, 3, 5):
            client.request(number, b"hello")
        for number in (1, 3, 5):
            assert (await client.answer(number))[0] == b"hello"
        assert len(writes) < 3


@looped
async def test_a_full_transport_takes_no_data_until_it_has_room():
    async with echoing(begin=False) as (server, client):
        client.begin({INITIAL_WINDOW: PLENTY})
        client.send(window_frame(0, PLENTY - 65_535))
        client.request(1, None, "/held")
        await until(lambda: server.begun)
        (stream,) = server.begun
        server.pause_writing()
        server.sender.begin(stream, FIRST)
        server.sender.data(stream, bytes(100))
        server.sender.finish(stream, LAST)
        assert server.held_bytes == 100
        assert (await client.until(HEADERS))[1] == 4
        server.resume_writing()
        assert (await client.answer(1))[0] == bytes(100)
        assert server.held_bytes == 0


@looped
async def test_what_waits_is_forgotten_with_its_stream():
    async with echoing(begin=False) as (server, client):
        client.begin({INITIAL_WINDOW: 10})
        client.request(1, b"x" * 25)
        await data_of(client, 10)
        server.receiver.close()
        assert server.held_bytes == 0
        assert server.begun[0].was_lost
