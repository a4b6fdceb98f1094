"""One connection to each node, made when needed and made again when lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from ropeway.gateway.node import forwarder as module
from ropeway.gateway.node.forwarder import Forwarder, ForwardingError
from ropeway.gateway.node.node_auth import NodeAuth
from ropeway.gateway.wire.frame import (
    MAX_FRAME_BYTES,
    FrameReader,
    decode_envelope,
    encode_frame,
)
from tests.remoting import looped, until


class Node:
    """A node that answers each request with its own body, until it is told not to."""

    def __init__(self) -> None:
        self.connections: list[asyncio.StreamWriter] = []
        self.silent = False
        self.answer = None
        self.keeps = self.kept = None
        self.probes = 0
        self.came: list[bytes] = []

    async def serve(self, reader, writer) -> None:
        self.connections.append(writer)
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            for frame in frames.feed(data):
                if self.silent:
                    continue
                opaque = decode_envelope(frame.serialize_type, frame.header).opaque
                self.probes += not frame.body
                self.came.append(bytes(frame.body))
                if frame.body == self.keeps:
                    answer = encode_frame(0, opaque, body=frame.body)
                    self.kept = partial(writer.write, answer)
                    continue
                writer.write(self.answer or encode_frame(0, opaque, body=frame.body))
        writer.close()


@asynccontextmanager
async def forwarding():
    node = Node()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    forwarder = Forwarder(MAX_FRAME_BYTES, None, NodeAuth("a secret of the cluster"))
    try:
        yield node, forwarder, f"{host}:{port}"
    finally:
        await forwarder.close()
        server.close()
        await server.wait_closed()


@looped
async def test_requests_share_a_connection_and_get_their_own_answers():
    async with forwarding() as (node, forwarder, address):
        frames = [b"%d" % number for number in range(20)]
        answers = await asyncio.gather(
            *(forwarder.forward(address, one, "127.0.0.1:1") for one in frames)
        )
        assert answers == frames
        assert len(node.connections) == 1
        assert (forwarder.forwarded, forwarder.failed) == (20, 0)


@looped
async def test_who_comes_just_when_it_is_connected_overtakes_nobody():
    """Found by seed 2131142230 of the simulator, on Pulsar and without a fault."""
    async with forwarding() as (node, forwarder, address):
        asked = []
        while not node.came:
            one = b"%d" % len(asked)
            asked.append(
                asyncio.ensure_future(forwarder.forward(address, one, "127.0.0.1:1"))
            )
            await asyncio.sleep(0)
        answers = await asyncio.gather(*asked)
        assert node.came == answers
        assert node.came == [b"%d" % number for number in range(len(asked))]


@looped
async def test_who_waits_for_a_connection_is_answered_where_the_node_ends():
    async with forwarding() as (_, forwarder, address):
        asked = asyncio.ensure_future(forwarder.forward(address, b"a", "127.0.0.1:1"))
        await asyncio.sleep(0)
        await forwarder.close()
        with pytest.raises(ForwardingError, match="connection was lost"):
            await asked


@looped
async def test_a_lost_connection_fails_who_waits_and_is_made_again():
    async with forwarding() as (node, forwarder, address):
        node.silent = True
        lost = asyncio.ensure_future(forwarder.forward(address, b"a", "127.0.0.1:1"))
        await until(lambda: node.connections)
        node.connections[0].transport.abort()
        with pytest.raises(ForwardingError, match=address):
            await lost
        node.silent = False
        assert await forwarder.forward(address, b"b", "127.0.0.1:1") == b"b"


@looped
async def test_a_node_that_does_not_answer_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_S", 0.05)
    async with forwarding() as (node, forwarder, address):
        node.silent = True
        with pytest.raises(ForwardingError, match="no answer in time"):
            await forwarder.forward(address, b"a", "127.0.0.1:1")
        node.silent = False
        monkeypatch.undo()
        assert await forwarder.forward(address, b"b", "127.0.0.1:1") == b"b"


@looped
async def test_a_node_that_has_fallen_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "LOOK_S", 0.05)
    async with forwarding() as (node, forwarder, address):
        node.silent = True
        with pytest.raises(ForwardingError, match="said nothing"):
            async with asyncio.timeout(30):
                await forwarder.forward(address, b"a", "127.0.0.1:1")
        node.silent = False
        assert await forwarder.forward(address, b"b", "127.0.0.1:1") == b"b"
        assert len(node.connections) == 2


@looped
async def test_a_node_that_answers_probes_may_take_its_time(monkeypatch):
    monkeypatch.setattr(module, "LOOK_S", 3600.0)
    async with forwarding() as (node, forwarder, address):
        node.keeps = b"a"
        waiting = asyncio.ensure_future(forwarder.forward(address, b"a", "c:1"))
        await until(lambda: node.kept)
        link = forwarder._link(address)
        for number in range(1, 4):
            link._look()
            await until(lambda: link._heard)
            assert node.probes == number
            link._look()
        node.kept()
        assert await waiting == b"a"
        assert len(node.connections) == 1


@looped
async def test_a_refusal_is_an_error_with_its_reason():
    async with forwarding() as (node, forwarder, address):
        node.answer = encode_frame(16, 0, remark="no node of this cluster")
        with pytest.raises(ForwardingError, match="no node of this cluster"):
            await forwarder.forward(address, b"a", "127.0.0.1:1")


@looped
async def test_an_answer_that_is_none_is_an_error():
    async with forwarding() as (node, forwarder, address):
        node.answer = b"\0\0\0\0\0\0\0\0"
        with pytest.raises(ForwardingError, match="did not answer"):
            await forwarder.forward(address, b"a", "127.0.0.1:1")


@looped
async def test_nobody_there_is_an_error():
    async with forwarding() as (_, forwarder, __):
        with pytest.raises(ForwardingError, match=r"127\.0\.0\.1:1 did not answer"):
            await forwarder.forward("127.0.0.1:1", b"a", "127.0.0.1:1")
        assert (forwarder.forwarded, forwarder.failed) == (1, 1)


@looped
async def test_closing_fails_who_waits():
    async with forwarding() as (node, forwarder, address):
        node.silent = True
        waiting = asyncio.ensure_future(forwarder.forward(address, b"a", "c:1"))
        await until(lambda: node.connections)
        await forwarder.close()
        with pytest.raises(ForwardingError, match="the connection was lost"):
            await waiting
