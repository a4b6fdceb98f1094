"""TLS and plain text on one port: certificates, and which of the two a client speaks.

A TLS connection begins with 0x16 (RFC 8446, 5.1); a frame begins with the high byte
of its length, which is 0 for every frame that may be sent, and HTTP/2 with a letter.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from ropeway.common.eager import own_task
from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ropeway.gateway.config import TlsConfig

log = structlog.get_logger(__name__)

HANDSHAKE = b"\x16"
_LOOK_EVERY_S = 1.0
_NO_PASSPHRASE = ""
"""Without an answer at hand, OpenSSL would ask for it on the terminal, and wait."""

_Stamp = tuple[tuple[int, int, int], ...]


class Certificates:
    """What a node shows on TLS connections, and whom it trusts, as its files say now.

    A connection keeps what it began with. Files that cannot be used, as those that are
    half written or of which only one is new, change nothing until they can be.

    Args:
        config: Names the files.
        protocols: What is offered to clients of the broker that ask for one (ALPN).

    Raises:
        OSError: A file cannot be read, or is not what it should be.
    """

    def __init__(self, config: TlsConfig, protocols: Sequence[str] = ()) -> None:
        self._config = config
        self._protocols = protocols
        self._stamp = _stamp(config)
        self._look_at_s = 0.0
        self.server: ssl.SSLContext
        """For clients that connect here."""
        self._site: ssl.SSLContext
        self._read()

    def _read(self) -> None:
        site = server_context(self._config)
        protocols = self._protocols
        self.server = server_context(self._config, protocols) if protocols else site
        self._site = site

    def following(self) -> ssl.SSLContext:
        """A context to keep: its connections get what the files say as they begin."""
        context = server_context(self._config)

        def choose(
            connection: ssl.SSLSocket | ssl.SSLObject,
            _name: str | None,
            _context: ssl.SSLContext,
        ) -> None:
            connection.context = self._site

        context.sni_callback = choose
        return context

    def refresh(self, now_s: float) -> None:
        """Read the files again if they have changed; looks once a second."""
        if now_s < self._look_at_s:
            return
        self._look_at_s = now_s + _LOOK_EVERY_S
        # Before they are read: what is written meanwhile is a change of its own.
        stamp = _stamp(self._config)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._read()
        except OSError as error:
            log.warning(
                "new certificate not used, the old one stays",
                certificate=str(self._config.certificate),
                reason=reason_of(error),
            )
        else:
            log.info("new certificate", certificate=str(self._config.certificate))


def node_context(config: TlsConfig | None) -> ssl.SSLContext | None:
    """How a node speaks to nodes of its cluster; None for plain text.

    Who they are their certificates say: signed by `nodes_ca`, or where that is not
    given, by somebody whom the system trusts, or our own one.

    Raises:
        OSError: A file cannot be read, or is not what it should be.
    """
    if config is None or not config.required:
        return None
    ca = config.nodes_ca
    context = ssl.create_default_context(cafile=str(ca) if ca else None)
    if ca is None:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(config.certificate)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(config.certificate, config.key, _NO_PASSPHRASE)
    return context


def server_context(config: TlsConfig, protocols: Sequence[str] = ()) -> ssl.SSLContext:
    """The server's side of TLS, as its files are now.

    Args:
        config: Which files.
        protocols: What is offered to clients that ask for a protocol (ALPN).

    Raises:
        OSError: A file cannot be read, or is not what it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(config.certificate, config.key, _NO_PASSPHRASE)
    if config.client_ca is not None:
        context.load_verify_locations(config.client_ca)
        context.verify_mode = (
            ssl.CERT_OPTIONAL
            if config.client_certificate == "optional"
            else ssl.CERT_REQUIRED
        )
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def _stamp(config: TlsConfig) -> _Stamp:
    """What differs once a file was written or another has taken its place."""
    files = (config.certificate, config.key, config.client_ca)
    return tuple(_stamp_of(one) for one in files if one is not None)


def _stamp_of(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


async def first_byte(client: socket.socket, timeout_s: float) -> bytes:
    """What a client that has just connected begins with; its bytes stay unread.

    Raises:
        TimeoutError: It said nothing in time.
        ConnectionError: It left.
    """
    with suppress(BlockingIOError):
        return _peek(client)
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(client, wake)
    try:
        await own_task(asyncio.wait_for(readable, timeout_s))
    finally:
        loop.remove_reader(client)
    return _peek(client)


def _peek(client: socket.socket) -> bytes:
    first = client.recv(1, socket.MSG_PEEK)
    if not first:
        raise ConnectionResetError("closed before its first byte")
    return first
