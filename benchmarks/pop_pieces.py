"""What popping costs without sockets: CPU microseconds from bytes in to bytes out.

    $ python -m benchmarks.pop_pieces
    $ python -m benchmarks.pop_pieces --rounds 5

As `processing`, for a pop of one message from eight queues, for an acknowledgement, and
for a message that is kept for longer. The least of many rounds is steady to some
percent on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from benchmarks.processing import PROPERTIES, QUEUES, Sink, send, turn
from ropeway.gateway.app import App
from ropeway.gateway.config import Config, ListenerConfig
from ropeway.gateway.connection import Connection
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.commands.pop import (
    AckMessage,
    ChangeInvisibleTime,
    PopMessage,
    PopReply,
)
from ropeway.gateway.wire.commands.send import SendBatchMessage
from ropeway.gateway.wire.frame import PREFIX, Buffer, decode_envelope, encode_frame
from ropeway.gateway.wire.header import Header, from_fields, row_of, to_fields
from ropeway.gateway.write_buffer import Outbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROUNDS = 60
MOST = 32
HEADER_BYTES = 0xFFFFFF


class Caught(Sink):
    """Takes answers, and keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def write(self, data: Buffer) -> None:
        self.data += data

    def writelines(self, pieces: Iterable[Buffer]) -> None:
        self.data += b"".join(pieces)


def frame(header: Header) -> bytes:
    return encode_frame(row_of(type(header)).code, 7, fields=to_fields(header))


def pop(count: int) -> bytes:
    return frame(
        PopMessage(
            consumer_group="bench",
            topic="bench",
            queue_id=-1,
            max_msg_nums=count,
            invisible_time=60_000,
            poll_time=0,
            born_time=0,
            init_mode=0,
            exp_type="TAG",
            exp="*",
            order=False,
            bname="broker-0",
        )
    )


def receipts(answer: bytes) -> Iterator[tuple[int, int, str]]:
    """Queue, offset and receipt of each popped message."""
    _, word = PREFIX.unpack_from(answer)
    end = PREFIX.size + (word & HEADER_BYTES)
    envelope = decode_envelope(word >> 24, answer[PREFIX.size : end])
    reply = from_fields(PopReply, envelope.ext_fields)
    assert reply.start_offset_info is not None, "there were messages"
    assert reply.msg_offset_info is not None, "there were messages"
    starts = dict(one.rsplit(" ", 1) for one in reply.start_offset_info.split(";"))
    for one in reply.msg_offset_info.split(";"):
        retry, queue_id, offsets = one.split(" ")
        for offset in offsets.split(","):
            text = (
                f"{starts[f'{retry} {queue_id}']} {reply.pop_time} "
                f"{reply.invisible_time} 0 {retry} broker-0 {queue_id} {offset}"
            )
            yield int(queue_id), int(offset), text


def done(queue_id: int, offset: int, receipt: str) -> bytes:
    return frame(
        AckMessage(
            consumer_group="bench",
            topic="bench",
            queue_id=queue_id,
            extra_info=receipt,
            offset=offset,
            bname="broker-0",
        )
    )


def kept(queue_id: int, offset: int, receipt: str) -> bytes:
    return frame(
        ChangeInvisibleTime(
            consumer_group="bench",
            topic="bench",
            queue_id=queue_id,
            extra_info=receipt,
            offset=offset,
            invisible_time=120_000,
            bname="broker-0",
        )
    )


async def cost(connection: Connection, requests: list[bytes]) -> float:
    """CPU time of each of some requests that come together, in microseconds."""
    window = b"".join(requests)
    began = time.thread_time()
    connection.data_received(window)
    await turn()
    return (time.thread_time() - began) * 1e6 / len(requests)


async def fill(connection: Connection, app: App) -> None:
    """Store messages in each queue."""
    topic = app.node.topics.get("bench")
    assert topic is not None, "it was made"
    ends = [one.end + MOST for one in topic.partitions]
    batch = encode_batch([BatchEntry(0, bytes(128), PROPERTIES)] * MOST)
    for queue_id in range(QUEUES):
        connection.data_received(send(queue_id, batch, SendBatchMessage))
    while [one.end for one in topic.partitions] != ends:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)


async def one_round(connection: Connection, caught: Caught) -> dict[str, float]:
    """Pop all there is, partly one by one; then acknowledge it, or keep it."""
    costs = {"pop of 1": await cost(connection, [pop(1)] * MOST)}
    for name, make in (("acknowledged", done), ("kept for longer", kept)):
        requests = []
        for _ in range(2):
            caught.data.clear()
            connection.data_received(pop(MOST))
            await turn()
            requests += [make(*one) for one in receipts(bytes(caught.data))]
        costs[name] = await cost(connection, requests)
    return costs


async def main(rounds: int) -> None:
    least: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as data:
        config = Config(
            data=Path(data), listeners=(ListenerConfig(port=0),), shutdown_ms=100
        )
        async with App(config) as app:
            fair_queue = FairQueue(config.limits, app.node.log, app.node.leadership)
            outbox = Outbox(asyncio.get_running_loop())
            (listener,) = app.server.listeners
            connection = Connection(
                app.node, listener, outbox, fair_queue, "127.0.0.1", 1024
            )
            caught = Caught()
            connection.connection_made(caught)
            await app.node.topics.auto_create("bench", "TBW102", QUEUES)
            await app.node.groups.ensure("bench")
            for _ in range(rounds):
                await fill(connection, app)
                for name, value in (await one_round(connection, caught)).items():
                    least[name] = min(value, least.get(name, value))
    for name, value in least.items():
        print(f"{name:40} {value:8.2f} us")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    uvloop.run(main(parser.parse_args().rounds))
