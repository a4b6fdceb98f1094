"""What a token costs: CPU microseconds of a single send, from bytes to bytes.

    $ python -m benchmarks.tokens
    $ python -m benchmarks.tokens --rounds 20

Without sockets, as `processing` measures. A client that shows a token sends it with
each request, which costs time where nobody looks at it, too; so that stands for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
import uvloop

from benchmarks.processing import CONNECTIONS, QUEUES, ROUNDS, Sink, measure, send
from ropeway.gateway.app import App
from ropeway.gateway.config import AclConfig, Config, ListenerConfig
from ropeway.gateway.connection import Connection
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.wire.frame import (
    FrameReader,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import decode_fields
from ropeway.gateway.write_buffer import Outbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ropeway.storage.api import Partition

FIRST_SEND_S = 60.0
"""Longer than a hook takes to ask for permissions, or to give up, on a busy machine."""
SECRET = bytes(range(32))
PERMITTED = b'{"auth_policies": {"namespace_auth": {"bench": ["produce", "consume"]}}}'
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
    % (len(PERMITTED), PERMITTED)
)


@asynccontextmanager
async def pulsar() -> AsyncIterator[str]:
    """An admin REST that permits everything."""

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            writer.write(ANSWER)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield "http://{}:{}".format(*server.sockets[0].getsockname())
    finally:
        server.close()


def signed(frame: bytes, **fields: str) -> bytes:
    """A send with more fields."""
    ((_, header, body),) = FrameReader().feed(frame)
    envelope = decode_envelope(0, header)
    return encode_frame(
        envelope.code,
        envelope.opaque,
        fields={**decode_fields(envelope.ext_fields), **fields},
        body=body,
    )


async def stored(partition: Partition) -> None:
    """Wait until a queue has its first message.

    Raises:
        TimeoutError: It has none after `FIRST_SEND_S`.
    """
    try:
        async with asyncio.timeout(FIRST_SEND_S):
            while not partition.end:  # noqa: ASYNC110 - a partition has no event
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise TimeoutError(
            f"the first send was not stored within {FIRST_SEND_S:.0f} s"
        ) from None


async def sends(rounds: int, name: str, acl: AclConfig | None, **fields: str) -> None:
    """Measure single sends, on many connections and on one."""
    async with AsyncExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory())
        config = Config(
            data=Path(data),
            listeners=(ListenerConfig(port=0),),
            shutdown_ms=100,
            acl=acl,
        )
        app = await stack.enter_async_context(App(config))
        outbox = Outbox(asyncio.get_running_loop())
        fair_queue = FairQueue(config.limits, app.node.log, app.node.leadership)
        (listener,) = app.server.listeners
        connections = [
            Connection(
                app.node, listener, outbox, fair_queue, "127.0.0.1", 1024 + number
            )
            for number in range(CONNECTIONS)
        ]
        for connection in connections:
            connection.connection_made(Sink())
        await app.node.topics.auto_create("bench", "TBW102", QUEUES)
        frames = [
            signed(send(number % QUEUES, bytes(128)), **fields)
            for number in range(CONNECTIONS)
        ]
        # What is permitted has to be asked for once.
        connections[0].data_received(frames[0])
        topic = app.node.topics.get("bench")
        assert topic is not None
        await stored(topic.partitions[0])

        def each() -> None:
            for connection, frame in zip(connections, frames, strict=True):
                connection.data_received(frame)

        window = b"".join(frames)
        one = connections[0]
        works: dict[str, Callable[[], Any]] = {
            "64 connections": each,
            "window of 64": lambda: one.data_received(window),
        }
        for way, work in works.items():
            await measure(rounds, f"{name}, {way}", work, CONNECTIONS)


async def main(rounds: int) -> None:
    """Measure every kind."""
    token = jwt.encode({"sub": "bench"}, SECRET, "HS256")
    shown = {"AccessKey": token, "Signature": "A" * 27 + "="}
    async with pulsar() as admin_url:
        with tempfile.NamedTemporaryFile() as key:
            key.write(SECRET)
            key.flush()
            options = {"admin_url": admin_url, "token_secret_key": key.name}
            acl = AclConfig(hooks=("pulsar",), options={"pulsar": options})
            await sends(rounds, "no access control", None)
            await sends(rounds, "token that nobody looks at", None, **shown)
            await sends(rounds, "token", acl, **shown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    uvloop.run(main(parser.parse_args().rounds))
