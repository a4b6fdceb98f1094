"""Certificates that are replaced count for the next connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.pulsar.tls import TlsFiles
from tests.gateway.test_tls import Pair, issue
from tests.remoting import looped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@contextlib.asynccontextmanager
async def asking(pair: Pair) -> AsyncIterator[int]:
    """The port of a server that says who its client's certificate is of."""
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cafile=str(pair.certificate)
    )
    context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.CERT_REQUIRED

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = writer.get_extra_info("peercert")["subject"]
        writer.write(subject[0][0][1].encode())
        writer.write_eof() if writer.can_write_eof() else writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def shown(port: int, tls: TlsFiles) -> str:
    """Whom a server sees."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls())
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


@looped
async def test_the_next_connection_shows_the_certificate_that_came_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    authority = issue(tmp_path, "server", address="127.0.0.1")
    first, second = (issue(tmp_path, name, authority) for name in ("first", "second"))
    files = [str(authority.certificate), str(first.certificate), str(first.key)]
    async with asking(authority) as port:
        tls = TlsFiles(*files)
        assert await shown(port, tls) == "first"
        assert tls() is tls(), "made anew for each connection, it costs each 10 ms"
        # One of two that belong together: what there was stays.
        second.certificate.replace(first.certificate)
        assert await shown(port, tls) == "first"
        assert "new files not used, the old stay" in capsys.readouterr().out
        second.key.replace(first.key)
        assert await shown(port, tls) == "second"
        first.key.unlink()
        assert await shown(port, tls) == "second"


def test_files_that_cannot_be_used_are_named(tmp_path: Path):
    one, other = issue(tmp_path, "one"), issue(tmp_path, "other")
    absent = str(tmp_path / "absent")
    with pytest.raises(OSError, match=f"cannot use {absent}: No such file"):
        TlsFiles(absent)
    mixed = str(one.certificate), str(other.key)
    with pytest.raises(OSError, match=r"one.pem with the key .*other.key: "):
        TlsFiles(None, *mixed)
