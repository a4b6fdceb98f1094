"""A TCP proxy between a node and Pulsar that cuts, strands or holds its connections."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress

AT_ONCE = 1 << 16
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends a reset, as a firewall does."""


class Link:
    """One connection through the proxy: two sockets, and whether bytes flow."""

    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self.writers = writers
        self.flows = asyncio.Event()

    def reset(self) -> None:
        for writer in self.writers:
            sock = writer.get_extra_info("socket")
            # One that is closed already has none, or one without a number.
            with suppress(OSError, ValueError, AttributeError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
        self.flows.set()


class Proxy:
    """Passes on what comes to `port` to another port of 127.0.0.1."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self._target = target
        self._links: set[Link] = set()
        self._held = False
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        while self.cut():  # noqa: ASYNC110 - links end by themselves
            await asyncio.sleep(0)

    def cut(self) -> int:
        """Reset all connections; how many there were."""
        links = [*self._links]
        for link in links:
            link.reset()
        return len(links)

    def strand(self) -> int:
        """Never pass on another byte of the connections that are there."""
        for link in self._links:
            link.flows.clear()
        return len(self._links)

    def hold(self) -> None:
        """Pass on nothing, of new connections either, until `release`."""
        self._held = True
        self.strand()

    def release(self) -> None:
        """Pass on what was held, and go on."""
        self._held = False
        for link in self._links:
            link.flows.set()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            Link(writer).reset()
            return
        link = Link(writer, there[1])
        if not self._held:
            link.flows.set()
        self._links.add(link)
        try:
            await asyncio.gather(
                self._pass_on(link, reader, there[1]),
                self._pass_on(link, there[0], writer),
            )
        finally:
            self._links.discard(link)
            link.reset()

    async def _pass_on(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(AT_ONCE):
                await link.flows.wait()
                if writer.transport.is_closing():
                    break
                writer.write(data)
                await writer.drain()
        for one in link.writers:
            one.close()
