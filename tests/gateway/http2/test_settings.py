"""What a client says of itself."""

from __future__ import annotations

import pytest

from ropeway.gateway.http2.frames import SETTINGS, frame, settings_frame
from tests.gateway.http2.raw import echoing
from tests.remoting import looped


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({2: 2}, 1),
        ({4: 1 << 31}, 3),
        ({5: (1 << 14) - 1}, 1),
        ({5: 1 << 24}, 1),
    ],
)
def test_values_that_are_not_allowed_end_the_connection(settings, code):
    @looped
    async def said():
        async with echoing() as (_, client):
            client.send(settings_frame(settings))
            assert await client.goaway_code() == code

    said()


@looped
async def test_settings_are_acknowledged_and_unknown_ones_ignored():
    async with echoing() as (server, client):
        assert (await client.until(SETTINGS))[1] == 1
        client.send(settings_frame({1: 0, 3: 7, 5: 1 << 15, 99: 1 << 31}))
        assert (await client.until(SETTINGS))[1] == 1
        assert server.sender.max_frame_bytes == 1 << 15


@looped
async def test_settings_of_a_wrong_length_end_the_connection():
    async with echoing() as (_, client):
        client.send(frame(SETTINGS, 0, 0, bytes(5)))
        assert await client.goaway_code() == 6


@looped
async def test_of_one_setting_twice_the_last_counts_and_many_end_the_connection():
    async with echoing() as (server, client):
        await client.until(SETTINGS)
        twice = b"".join(b"\0\4" + size.to_bytes(4, "big") for size in (7, 9))
        client.send(frame(SETTINGS, 0, 0, twice * 16))
        assert (await client.until(SETTINGS))[1] == 1
        assert server.sender.first_window == 9
        client.send(frame(SETTINGS, 0, 0, twice * 17))
        assert await client.goaway_code() == 11
