"""A server that stops while clients speak TLS to it."""

import asyncio
import socket
import ssl
from pathlib import Path

from tests.gateway.test_tls import Pair, server_pair, tls_app, trusting
from tests.remoting import looped, until

__all__ = ["server_pair"]


@looped
async def test_shutdown_does_not_wait_for_clients_that_do_not_close_their_side(
    tmp_path: Path, server_pair: Pair
):
    """Each stop took all its time where a Java client spoke TLS."""
    async with tls_app(tmp_path, server_pair) as app:
        listener = app.server.listeners[0]

        def silent() -> ssl.SSLSocket:
            plain = socket.create_connection((listener.host, listener.port))
            return trusting(server_pair).wrap_socket(plain, server_hostname="localhost")

        with await asyncio.to_thread(silent):
            await until(lambda: listener.connections)
            # uvloop itself gives up after 30 s.
            async with asyncio.timeout(25):
                await app.server.close(600)
