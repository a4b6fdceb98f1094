"""The page's connections: how many, how long, and in turns with everybody else."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import HttpConfig
from tests.gateway.http.site import serving
from tests.remoting import looped, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.http.site import Site

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
WAIT_S = 60


async def connected(site: Site) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = site.address.removeprefix("http://").rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What came until the page closed the connection."""
    try:
        return await asyncio.wait_for(reader.read(), WAIT_S)
    except ConnectionError:
        return b""


@looped
async def test_one_connection_more_than_allowed_is_closed(tmp_path: Path):
    config = HttpConfig(port=0, connections=2, headers_ms=WAIT_S * 1000)
    async with serving(tmp_path, config) as site:
        first, second = await connected(site), await connected(site)
        for reader, writer in (first, second):
            writer.write(GET)
            assert b"200 OK" in await asyncio.wait_for(reader.readline(), WAIT_S)
        reader, writer = await connected(site)
        assert await ended(reader) == b""
        writer.close()
        assert (await site.client.ask(sending("orders"), b"x")).code == 0
        first[1].close()
        for _ in range(1000):
            reader, writer = await connected(site)
            writer.write(GET)
            if b"200 OK" in await asyncio.wait_for(reader.readline(), WAIT_S):
                break
            writer.close()
        else:
            raise AssertionError("who has gone keeps its place")
        writer.close()
        second[1].close()


@looped
async def test_a_connection_without_a_whole_request_is_closed(tmp_path: Path):
    config = HttpConfig(port=0, headers_ms=50)
    async with serving(tmp_path, config) as site:
        silent, slow = await connected(site), await connected(site)
        slow[1].write(GET[:20])
        for reader, writer in (silent, slow):
            assert await ended(reader) == b""
            writer.close()
        # It counts for each request anew, and not while nothing is asked.
        for _ in range(1000):
            reader, writer = await connected(site)
            writer.write(GET)
            with contextlib.suppress(ConnectionError):
                if b"200 OK" in await asyncio.wait_for(reader.readline(), WAIT_S):
                    break
            # The machine stood still for longer than that.
            writer.close()
        else:
            raise AssertionError("a whole request is not answered")
        await asyncio.wait_for(reader.readuntil(b"}"), WAIT_S)
        writer.write(GET[:20])
        assert await ended(reader) == b""
        writer.close()


@looped
async def test_requests_one_behind_the_other_are_answered_in_turns(tmp_path: Path):
    async with serving(tmp_path) as site:
        reader, writer = await connected(site)
        writer.write(GET * 500)
        sent = [site.client.send(sending("orders"), b"x") for _ in range(200)]
        for _ in range(500):
            await asyncio.wait_for(reader.readuntil(b"}"), WAIT_S)
        assert {one.code for one in await asyncio.gather(*sent)} == {0}
        writer.close()
        fair_queue = site.app.node.fair_queue
        await until(fair_queue.is_free)


@looped
async def test_a_body_that_is_too_long_is_refused_and_the_rest_goes_on(tmp_path: Path):
    async with serving(tmp_path) as site:
        reader, writer = await connected(site)
        writer.write(
            b"POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Ropeway: 1\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        writer.write(b"1\r\nx\r\n" * 200_000)
        answered = await asyncio.wait_for(reader.readline(), WAIT_S)
        assert answered.split()[1] == b"413"
        assert (await site.client.ask(sending("orders"), b"x")).code == 0
        writer.close()


HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"0\r\n\r\n" + HIDDEN


@looped
@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + CHUNKED,
        b"Content-Length: 0\r\nContent-Length: 49\r\n\r\n" + HIDDEN,
        b"Content-Length: 0, 49\r\n\r\n" + HIDDEN,
        b"Content-Length: +0\r\n\r\n" + HIDDEN,
        b"Content-Length : 0\r\n\r\n" + HIDDEN,
        b"Content-Length: -1\r\n\r\n" + HIDDEN,
        b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKED,
        b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKED,
        b"X: y\n\r\n" + HIDDEN,
        b"X: y\r\n Transfer-Encoding: chunked\r\nX\r\n\r\n" + HIDDEN,
    ],
)
async def test_no_request_is_hidden_in_another(tmp_path: Path, fields: bytes):
    """What proxies before the page could read otherwise ends the connection."""
    async with serving(tmp_path) as site:
        reader, writer = await connected(site)
        writer.write(b"POST /api/session HTTP/1.1\r\nHost: localhost\r\n" + fields)
        said = await ended(reader)
        assert b"alive" not in said
        assert not said or b" 400 " in said.partition(b"\r\n")[0]
        writer.close()
