"""The requests of which `benchmarks.instructions` counts what they cost.

    $ python -m benchmarks.instruction_cases LIBRARY

LIBRARY tells callgrind when to count, see `counter.c`; without callgrind they are asked
and nothing is counted.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from logging import ERROR
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import uvloop

from benchmarks import codec, filters, grpc
from benchmarks.pop_pieces import MOST, done, fill, frame, pop, receipts
from benchmarks.processing import PROPERTIES, QUEUES, SPECIAL, send
from benchmarks.socketless import CLIENTS, Bench, SlowTimers, checked, envelope_of
from ropeway.gateway.app import App
from ropeway.gateway.config import Config, LimitsConfig, ListenerConfig
from ropeway.gateway.grpc.setup import messaging
from ropeway.gateway.node import fair_queueing
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage
from ropeway.gateway.wire.commands.send import (
    SendBatchMessage,
    SendMessageV2,
    SendReply,
)
from ropeway.gateway.wire.commands.transactions import COMMIT, EndTransaction
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, encode_frame
from ropeway.gateway.wire.header import from_fields, to_fields
from ropeway.gateway.wire.properties import dump

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REQUESTS = CLIENTS
"""So many of each kind a round, where a case says nothing else."""
BATCH = 100
CONDITION = filters.CONDITIONS[2]
ID_DIGITS = 16
"""A message id ends in so many that say where the message lies."""
SENT, PULLED, FILTERED = "sent", "pulled", "filtered"
CALLED, RECEIVED = "called", "received"


class Cases:
    """One method a case: it asks once, and says for how many messages."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._sends = [_send(one) for one in range(REQUESTS)]

    async def send(self) -> int:
        """Single sends, each read alone."""
        await self._bench.ask(self._sends)
        return REQUESTS

    async def send_together(self) -> int:
        """Single sends, each on a connection of its own, in one tick."""
        pairs = list(zip(self._bench.clients, self._sends, strict=True))

        async def together() -> None:
            for answer in [client.ask(request, 1) for client, request in pairs]:
                await answer

        await self._bench.counted(together)
        for client, _ in pairs:
            checked(client, 1)
        return REQUESTS

    async def send_pipelined(self) -> int:
        """Single sends that come in one read."""
        await self._bench.ask(self._sends, REQUESTS)
        return REQUESTS

    async def batch(self) -> int:
        """A batch, twice."""
        await self._bench.ask([_batch(SENT, BATCH, 1024, PROPERTIES)] * 2)
        return 2 * BATCH

    async def pull(self) -> int:
        """Pulls of the newest messages, each read alone."""
        return await self._pull(PULLED, None)

    async def pull_filtered(self) -> int:
        """Pulls with a condition, which all messages fulfil."""
        return await self._pull(FILTERED, CONDITION)

    async def _pull(self, topic: str, condition: str | None) -> int:
        properties = dump(filters.PAIRS) if condition else PROPERTIES
        await self._bench.give(_batch(topic, 4 * MOST, 1024, properties))
        end = self._bench.end(topic)
        starts = range(end - 4 * MOST, end, MOST)
        await self._bench.ask([_pull(topic, start, condition) for start in starts])
        return 4 * MOST

    async def pop(self) -> int:
        """Pops of one message each, and an acknowledgement of each."""
        return await self._pop([pop(1)] * REQUESTS, REQUESTS)

    async def pop_many(self) -> int:
        """A pop of many, and an acknowledgement of each."""
        return await self._pop([pop(MOST)], MOST)

    async def _pop(self, pops: list[bytes], count: int) -> int:
        await fill(self._bench.clients[0].protocol, self._bench.app)
        self._bench.clients[0].taken()
        found = []
        for answer in await self._bench.ask(pops):
            found += [done(*one) for one in receipts(answer)]
        if len(found) != count:
            raise RuntimeError(f"{len(found)} messages were popped, of {count}")
        await self._bench.ask(found)
        return count

    async def timed(self) -> int:
        """Messages with a delivery time that is far off."""
        _, more, flag = SPECIAL[0]
        await self._bench.ask([_send(one, more, flag) for one in range(REQUESTS)])
        return REQUESTS

    async def transaction(self) -> int:
        """Half messages, and a commit of each."""
        _, more, flag = SPECIAL[1]
        halves = [_send(one, more, flag) for one in range(REQUESTS)]
        answered = await self._bench.ask(halves)
        await self._bench.ask([_committed(one) for one in answered])
        return REQUESTS

    async def grpc_send(self) -> int:
        """Calls that send a message each, in one read."""
        self._bench.connect()
        await self._bench.call("SendMessage", [grpc.sending(CALLED)] * REQUESTS)
        return REQUESTS

    async def grpc_receive(self) -> int:
        """A call that receives messages, and one for each that acknowledges it."""
        self._bench.connect()
        await self._bench.settle(RECEIVED)
        await self._bench.give(_batch(RECEIVED, grpc.BATCH, 128, PROPERTIES))
        (got,) = await self._bench.call("ReceiveMessage", [grpc.receiving(RECEIVED)])
        found = grpc.received(got)
        if len(found) != grpc.BATCH:
            raise RuntimeError(f"{len(found)} messages of {grpc.BATCH} were received")
        acknowledgements = [grpc.acknowledging(RECEIVED, one) for one in found]
        await self._bench.call("AckMessage", acknowledgements)
        return grpc.BATCH

    async def codec(self) -> int:
        """Frames of a kind that no fast path knows, cut, read and written."""
        request = codec.frame_of(RequestCode.SEND_MESSAGE_V2, codec.SEND)

        async def work() -> None:
            for _ in range(BATCH):
                ((kind, head, body),) = FrameReader().feed(request)
                envelope = decode_envelope(kind, head)
                sent = from_fields(SendMessageV2, envelope.ext_fields)
                encode_frame(envelope.code, 7, fields=to_fields(sent), body=body)

        await self._bench.counted(work)
        return BATCH


def _send(number: int, more: str = "", sys_flag: int = 0) -> bytes:
    queue_id = number % QUEUES
    return send(queue_id, bytes(128), SendMessageV2, more, sys_flag, SENT)


def _batch(topic: str, count: int, size: int, properties: str) -> bytes:
    body = encode_batch([BatchEntry(0, bytes(size), properties)] * count)
    return send(0, body, SendBatchMessage, topic=topic)


def _pull(topic: str, offset: int, condition: str | None) -> bytes:
    return frame(
        PullMessage(
            consumer_group="bench",
            topic=topic,
            queue_id=0,
            queue_offset=offset,
            max_msg_nums=MOST,
            sys_flag=SUBSCRIPTION_FLAG,
            commit_offset=0,
            suspend_timeout_millis=0,
            sub_version=0,
            subscription=condition or "*",
            expression_type="SQL92" if condition else "TAG",
        )
    )


def _committed(answer: bytes) -> bytes:
    """The request that commits a half message, by what its send was answered."""
    reply = from_fields(SendReply, envelope_of(answer).ext_fields)
    return frame(
        EndTransaction(
            producer_group="bench",
            tran_state_table_offset=reply.queue_offset,
            commit_log_offset=int(reply.msg_id[-ID_DIGITS:], 16),
            commit_or_rollback=COMMIT,
            msg_id="7F" * 16,
            transaction_id="7F" * 16,
            topic=SENT,
        )
    )


async def main(given: argparse.Namespace) -> None:
    """Ask for everything."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(ERROR))
    # What callgrind runs is fifty times as slow: nothing is to wait for that.
    fair_queueing._TICK_S = fair_queueing._TURN_S = 60.0  # noqa: SLF001
    with tempfile.TemporaryDirectory() as data:
        config = Config(
            data=Path(data),
            listeners=(ListenerConfig(port=0),),
            limits=LimitsConfig(send_wait_ms=600_000, waiting_bytes=1 << 30),
            shutdown_ms=100,
            grpc=True,
        )
        async with App(config) as app, messaging(app):
            await app.node.groups.ensure("bench")
            await app.node.topics.auto_create("bench", "TBW102", QUEUES)
            await app.node.topics.auto_create(SENT, "TBW102", QUEUES)
            for topic in (PULLED, FILTERED, CALLED, RECEIVED):
                await app.node.topics.auto_create(topic, "TBW102", 1)
            bench = Bench(app, given.library)
            await bench.begin()
            cases = Cases(bench)
            for name, case in CASES.items():
                if not given.words or any(word in name for word in given.words):
                    await bench.measure(name, given.rounds, partial(case, cases))


CASES: dict[str, Callable[[Cases], Awaitable[int]]] = {
    "send, one a read": Cases.send,
    "send, 16 connections": Cases.send_together,
    "send, 16 in a read": Cases.send_pipelined,
    "batch of 100 x 1 KiB": Cases.batch,
    "pull of 32 x 1 KiB": Cases.pull,
    "pull of 32, SQL of three terms": Cases.pull_filtered,
    "pop of 1, acknowledged": Cases.pop,
    "pop of 32, acknowledged": Cases.pop_many,
    "timed message": Cases.timed,
    "half message and commit": Cases.transaction,
    "gRPC send": Cases.grpc_send,
    "gRPC receive of 32, acknowledged": Cases.grpc_receive,
    "frame, decoded and encoded": Cases.codec,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("words", nargs="*", help="of the names of cases")
    parser.add_argument("--rounds", type=int, default=5)
    uvloop.run(main(parser.parse_args()), loop_factory=SlowTimers)
