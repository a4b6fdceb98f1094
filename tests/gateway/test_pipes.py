"""Pipes: every byte both ways, and no faster than the slower side takes them."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from structlog.testing import capture_logs

from ropeway.acl.api import Channel, Source
from ropeway.gateway.budget import Budget
from ropeway.gateway.config import Config, QuotaConfig
from ropeway.gateway.pipes import Pipes
from ropeway.gateway.quotas import Quotas, Share
from ropeway.gateway.unauthenticated import Unauthenticated
from tests.gateway.test_partial_requests import DATA, PREFACE, frame, request
from tests.remoting import TIMEOUT_S, looped, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

CLIENT = SimpleNamespace(
    listener=SimpleNamespace(
        unauthenticated=Unauthenticated(Config(), is_guarded=True)
    ),
    address="127.0.0.1:1",
    packed_address=b"",
    source=Source("127.0.0.1", Channel.REMOTING),
    share=None,
    flow=None,
)
PLENTY = 8 << 20


@asynccontextmanager
async def piped(
    path: Path,
    serve: Callable[..., Any],
    client: Any = CLIENT,
    limit_bytes: int = PLENTY,
) -> AsyncIterator[Any]:
    """A server behind a pipe: the pipes, and a client's reader and writer."""
    server = await asyncio.start_unix_server(serve, path)
    pipes = Pipes(path, Budget(limit_bytes), PLENTY)
    loop = asyncio.get_running_loop()
    front = await loop.create_server(lambda: pipes.accept(client), "127.0.0.1", 0)
    port = front.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield pipes, reader, writer
    finally:
        writer.close()
        pipes.close()
        await until(lambda: not pipes.open)
        front.close()
        server.close()


@looped
async def test_all_bytes_come_through_both_ways(tmp_path: Path):
    async def echo(reader: Any, writer: Any) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    sent = os.urandom(PLENTY)
    async with piped(tmp_path / "socket", echo) as (pipes, reader, writer):
        writer.write(sent)
        assert await reader.readexactly(PLENTY) == sent
        assert len(pipes.open) == 1
        writer.close()
        await until(lambda: not pipes.open)


@looped
async def test_a_server_does_not_run_ahead_of_its_client(tmp_path: Path):
    taken = 0

    async def flood(_: Any, writer: Any) -> None:
        nonlocal taken
        for _ in range(1024):
            writer.write(bytes(1 << 16))
            await writer.drain()
            taken += 1 << 16
        writer.close()

    async with piped(tmp_path / "socket", flood) as (_, reader, _):
        await until(lambda: taken)
        before = -1
        while taken != before:
            before = taken
            await asyncio.sleep(0.3)
        assert 0 < taken < 32 << 20
        assert len(await reader.read()) == 64 << 20


@looped
async def test_a_pipe_ends_when_either_side_does(tmp_path: Path):
    async def greet(_: Any, writer: Any) -> None:
        writer.write(b"hello")
        writer.close()

    async with piped(tmp_path / "socket", greet) as (pipes, reader, _):
        assert await reader.read() == b"hello"
        await until(lambda: not pipes.open)


@looped
async def test_a_pipe_to_nowhere_is_closed(tmp_path: Path):
    async def leave(_: Any, writer: Any) -> None:
        writer.close()

    async with piped(tmp_path / "socket", leave) as (pipes, _, _):
        pipes.path = str(tmp_path / "elsewhere")
        loop = asyncio.get_running_loop()
        front = await loop.create_server(lambda: pipes.accept(CLIENT), "127.0.0.1", 0)
        port = front.sockets[0].getsockname()[1]
        with capture_logs() as logs:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(TIMEOUT_S):
                # A reset, or an end.
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
        assert [one["event"] for one in logs] == ["gRPC is not there"]
        await until(lambda: not pipes.open)
        writer.close()
        front.close()


@looped
async def test_of_too_many_unfinished_requests_the_slowest_client_goes(tmp_path: Path):
    ended = 0

    async def take(reader: Any, writer: Any) -> None:
        nonlocal ended
        while await reader.read(1 << 16):
            pass
        writer.close()
        await writer.wait_closed()
        ended += 1

    part = PREFACE + frame(DATA, 0, 1, request(1000)[:605])
    async with piped(tmp_path / "socket", take, limit_bytes=1000) as (
        pipes,
        first,
        writer,
    ):
        writer.write(part)
        await until(lambda: pipes.budget.used_bytes == 600)
        address = writer.get_extra_info("peername")
        second, other = await asyncio.open_connection(*address)
        other.write(part)
        with suppress(ConnectionError):
            assert await first.read() == b""
        assert pipes.budget.used_bytes == 600
        other.write(frame(DATA, 1, 1, bytes(400)))
        await until(lambda: pipes.budget.used_bytes == 0)
        assert len(pipes.open) == 1
        other.close()
        assert await second.read() == b""
        await until(lambda: ended == 2 and not pipes.open)


@looped
async def test_bytes_count_for_a_quota_both_ways_and_all_come_in_the_end(
    tmp_path: Path,
):
    size = 100_000

    async def echo(reader: Any, writer: Any) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    quotas = Quotas([QuotaConfig(bytes_per_s=size)], by_principal=False)
    share = Share(quotas, "127.0.0.1", SimpleNamespace())
    assert share.begin()
    client = SimpleNamespace(**{**vars(CLIENT), "share": share})
    async with piped(tmp_path / "socket", echo, client) as (_, reader, writer):
        sent = os.urandom(size)
        writer.write(sent)
        assert await reader.readexactly(size) == sent
        # Twice as much as a second allows has come through. Where the machine stood
        # still, it is read again by now.
        assert share._account.throttled
        writer.write(sent)
        assert await reader.readexactly(size) == sent
