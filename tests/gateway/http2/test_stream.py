"""A stream by itself does nothing, and counts what was consumed."""

from __future__ import annotations

from ropeway.gateway.http2.frames import WINDOW_UPDATE
from ropeway.gateway.http2.stream import WINDOW_BYTES, Stream
from tests.gateway.http2.raw import echoing
from tests.remoting import looped


@looped
async def test_a_stream_widens_its_window_by_halves_and_not_after_its_end():
    async with echoing() as (server, client):
        stream = Stream(server, 1, 100)
        stream.begin({})
        stream.take(b"")
        stream.moved()
        stream.room -= WINDOW_BYTES // 2
        server.receiver.keep(1, stream)
        server.receiver._widen(stream)
        assert stream.room == WINDOW_BYTES // 2
        server.receiver.consumed(stream)
        assert (stream.room, stream.kept) == (WINDOW_BYTES, 0)
        while (await client.until(WINDOW_UPDATE))[2] != 1:
            pass
        stream.ended = True
        stream.room = 0
        server.receiver.consumed(stream)
        assert stream.room == 0
        stream.lost()
