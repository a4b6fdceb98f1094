"""TLS and plain text on one port: the first byte of a connection tells which.

A TLS connection begins with 0x16 (RFC 8446, 5.1); a frame begins with the high byte
of its length, which is 0 for every frame that may be sent.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config import TlsConfig

_HANDSHAKE = b"\x16"


def server_context(config: TlsConfig) -> ssl.SSLContext:
    """The server's side of TLS, from certificate files.

    Raises:
        OSError: A file cannot be read, or is not what it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(config.certificate, config.key)
    if config.client_ca is not None:
        context.load_verify_locations(config.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def wants_tls(client: socket.socket, timeout_s: float) -> bool:
    """Whether a client that has just connected speaks TLS; its bytes stay unread.

    Raises:
        TimeoutError: It said nothing in time.
        ConnectionError: It left.
    """
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(client, wake)
    try:
        await asyncio.wait_for(readable, timeout_s)
    finally:
        loop.remove_reader(client)
    first = client.recv(1, socket.MSG_PEEK)
    if not first:
        raise ConnectionResetError("closed before its first byte")
    return first == _HANDSHAKE
