"""What requests cost without sockets: CPU microseconds from bytes in to bytes out.

    $ python -m benchmarks.processing
    $ python -m benchmarks.processing --rounds 5

Requests are handed to connections as the network would, the log writes to a
temporary directory, and answers are thrown away. The least of many short rounds is
steady to a few percent on a busy machine, so this shows small changes that
`compare` cannot.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from ropeway.gateway.app import App
from ropeway.gateway.config import Config, LimitsConfig, ListenerConfig
from ropeway.gateway.connection import Connection
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage
from ropeway.gateway.wire.commands.send import (
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
)
from ropeway.gateway.wire.frame import Buffer, encode_frame
from ropeway.gateway.wire.header import to_fields
from ropeway.gateway.wire.properties import dump
from ropeway.gateway.write_buffer import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROUNDS = 60
CALLS = 8
"""Calls a round; the log commits after each."""
CONNECTIONS = 64
QUEUES = 8
TICKS = 4
"""Turns of the loop until a send is answered and its answer written."""
PROPERTIES = dump({"UNIQ_KEY": "7F" * 16, "WAIT": "true", "TAGS": "TagA"})
SPECIAL = (
    ("timed, of 128 B", dump({"TIMER_DELAY_SEC": "3600"}), 0),
    ("half message of 128 B", dump({"TRAN_MSG": "true", "PGROUP": "bench"}), 4),
)
"""Names of cases, what their properties have beside the usual, and their flags."""


class Sink(asyncio.Transport):
    """Takes answers, and counts them as taken at once."""

    def write(self, _data: Buffer) -> None:
        pass

    def writelines(self, _pieces: Iterable[Buffer]) -> None:
        pass

    def set_write_buffer_limits(
        self, high: int | None = None, low: int | None = None
    ) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def send(
    queue_id: int,
    body: bytes,
    kind: type[SendMessage] = SendMessageV2,
    more: str = "",
    sys_flag: int = 0,
    topic: str = "bench",
) -> bytes:
    header = kind(
        producer_group="bench",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue_id,
        sys_flag=sys_flag,
        born_timestamp=1795248367175,
        flag=0,
        properties=PROPERTIES + more,
        batch=kind is SendBatchMessage,
    )
    code = (
        RequestCode.SEND_BATCH_MESSAGE if header.batch else RequestCode.SEND_MESSAGE_V2
    )
    return encode_frame(code, queue_id, fields=to_fields(header), body=body)


def pull(offset: int) -> bytes:
    header = PullMessage(
        consumer_group="bench",
        topic="bench",
        queue_id=0,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription="*",
    )
    return encode_frame(RequestCode.PULL_MESSAGE, 1, fields=to_fields(header))


async def turn() -> None:
    for _ in range(TICKS):
        await asyncio.sleep(0)


async def measure(
    rounds: int, name: str, work: Callable[[], object], requests: int
) -> None:
    """Print the CPU time of one of the requests that a call of `work` makes."""
    least = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(CALLS):
            work()
            await turn()
        least = min(least, time.thread_time() - began)
    print(f"{name:40} {least / CALLS / requests * 1e6:8.2f} us")


async def main(rounds: int) -> None:
    measured = partial(measure, rounds)
    with tempfile.TemporaryDirectory() as data:
        config = Config(
            data=Path(data),
            listeners=(ListenerConfig(port=0),),
            # What a slow disk has refused would be the least that a request costs.
            limits=LimitsConfig(send_wait_ms=600_000, waiting_bytes=1 << 30),
            shutdown_ms=100,
        )
        async with App(config) as app:
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
            one = connections[0]
            await app.node.topics.auto_create("bench", "TBW102", QUEUES)
            await app.node.groups.ensure("bench")

            def each(frames: Iterable[bytes]) -> None:
                for connection, frame in zip(connections, frames, strict=False):
                    connection.data_received(frame)

            sends = [send(index % QUEUES, bytes(128)) for index in range(CONNECTIONS)]
            window = b"".join(sends)
            await measured("single of 128 B, 64 connections", lambda: each(sends), 64)
            await measured(
                "single of 128 B, window of 64", lambda: one.data_received(window), 64
            )
            for name, more, sys_flag in SPECIAL:
                special = [
                    send(index % QUEUES, bytes(128), SendMessageV2, more, sys_flag)
                    for index in range(CONNECTIONS)
                ]
                one.data_received(special[0])
                await asyncio.sleep(1)
                await measured(name, partial(each, special), 64)
            entries = [BatchEntry(0, bytes(1024), PROPERTIES)] * 100
            batch = send(0, encode_batch(entries), SendBatchMessage)
            await measured("batch of 100 x 1 KiB", lambda: one.data_received(batch), 1)
            queue = app.node.topics.get("bench")
            assert queue is not None
            end = queue.partitions[0].end
            pulls = cycle([pull(end - offset) for offset in range(3200, 0, -32)])
            await measured("pull of 32 x 1 KiB", lambda: each(pulls), CONNECTIONS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    uvloop.run(main(parser.parse_args().rounds))
