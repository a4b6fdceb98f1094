"""An S3 server in a process of its own, with one empty bucket."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import aiohttp
import yarl
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

BUCKET = "ropeway"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
START_S = 120


@contextlib.contextmanager
def server(directory: Path) -> Iterator[str]:
    """Its address, while it runs."""
    output = directory / "s3.log"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdout=subprocess.PIPE,
            stderr=file,
            env=os.environ | CREDENTIALS,
        )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        assert port, output.read_text()
        address = f"http://127.0.0.1:{port}"
        _make_bucket(address)
        yield address
    finally:
        process.terminate()
        process.wait(START_S)
        process.stdout.close()


# It takes a free port and says which; `moto_server` would say another one's.
_PROGRAM = """
from moto.moto_server import werkzeug_app as moto
from werkzeug.serving import make_server
app = moto.DomainDispatcherApplication(moto.create_backend_app)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextlib.asynccontextmanager
async def guarded(address: str) -> AsyncIterator[tuple[str, list[bool]]]:
    """The server's address behind one that answers 403 while the word is False."""
    permitted = [True]

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if not permitted[0]:
            return web.Response(status=403, text=_DENIED, content_type="text/xml")
        async with session.request(
            request.method,
            yarl.URL(f"{address}{request.raw_path}", encoded=True),
            data=body,
            headers=request.headers,
        ) as found:
            data = await found.read()
            kept = {
                name: value
                for name, value in found.headers.items()
                if name.lower() in _KEPT_HEADERS
            }
            return web.Response(status=found.status, body=data, headers=kept)

    server = web.AppRunner(web.Application(client_max_size=1 << 30))
    server.app.router.add_route("*", "/{path:.*}", answer)
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        await server.setup()
        site = web.TCPSite(server, "127.0.0.1", 0)
        await site.start()
        try:
            port = server.addresses[0][1]
            yield f"http://127.0.0.1:{port}", permitted
        finally:
            await server.cleanup()


_DENIED = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>InvalidAccessKeyId</Code><Message>It does not exist.</Message></Error>"""
_KEPT_HEADERS = {"content-range", "content-type", "etag", "last-modified"}


def _make_bucket(address: str) -> None:
    until = time.monotonic() + START_S
    request = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
    while True:
        try:
            urllib.request.urlopen(request, timeout=START_S).close()
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def url(address: str, prefix: str) -> str:
    """The URL of a provider there."""
    return f"s3://{BUCKET}/{prefix}?endpoint={address}&region=us-east-1"
