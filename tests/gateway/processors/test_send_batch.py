"""Large batches: made in slices, while others go on, and stored whole."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.node import fair_queueing
from ropeway.gateway.node.batches import publisher
from ropeway.gateway.processors import batches, send_batch
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.batch import (
    SLICE_BYTES,
    SLICE_MESSAGES,
    BatchEntry,
    count_up_to,
    decode_batch,
    encode_batch,
)
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.batches import CommitBatch, Stage, StageReply
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.message_id import parse_offset_msg_id
from ropeway.storage.api import Record
from tests.remoting import TIMEOUT_S, looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ropeway.gateway.wire.message import Message

LARGE = 16_384
PLAIN = properties.dump({"UNIQ_KEY": "7F" * 16})


def batch(count: int, text: str = PLAIN) -> bytes:
    return encode_batch(
        [BatchEntry(0, b"%d" % number, text) for number in range(count)]
    )


async def until(holds: Callable[[], object]) -> int:
    """Wait, and count how often others went on."""
    ticks = 0
    async with asyncio.timeout(TIMEOUT_S):
        while not holds():
            ticks += 1
            await asyncio.sleep(0)
    return ticks


async def all_of(client: Any, topic: str) -> list[Message]:
    found: list[Message] = []
    while True:
        asked = pulling(topic, queue_offset=len(found), max_msg_nums=1024, bulk=True)
        answer = await client.ask(asked)
        if answer.code:
            return found
        found += answer.messages()


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice has a tick of its own, however fast the machine is."""
    monkeypatch.setattr(fair_queueing, "_TICK_S", 1e-6)
    monkeypatch.setattr(fair_queueing, "_TURN_S", 0.0)


@looped
@pytest.mark.usefixtures("short_turns")
@pytest.mark.parametrize(("count", "text"), [(LARGE, PLAIN), (LARGE // 2, "")])
async def test_others_go_on_while_a_large_batch_is_made(
    tmp_path: Path, count: int, text: str
):
    """Before, 16,384 messages took 25 ms in which nobody was heard."""
    async with running(tmp_path) as (app, client):
        await client.ask(sending("t"), b"before")
        waiting = app.node.pending_sends.waiting
        asked = asyncio.create_task(
            client.ask(sending("t", batch=True), batch(count, text))
        )
        await until(lambda: waiting or asked.done())
        assert await until(lambda: not waiting) >= count // 1024
        reply = (await asked).read(SendReply)
        ids = [parse_offset_msg_id(one).message_id for one in reply.msg_id.split(",")]
        found = await all_of(client, "t")
        assert [one.queue_offset for one in found] == list(range(count + 1))
        assert [one.message_id for one in found[1:]] == ids
        assert [one.body for one in found[1:]] == [b"%d" % n for n in range(count)]


@looped
@pytest.mark.usefixtures("short_turns")
async def test_what_comes_behind_a_large_batch_is_stored_behind_it(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("t"), b"before")
        asked = [
            asyncio.create_task(client.ask(sending("t", batch=several), body))
            for several, body in (
                (True, batch(LARGE)),
                (False, b"between"),
                (True, batch(LARGE)),
                (True, batch(2)),
                (False, b"behind"),
            )
        ]
        offsets = [(await one).read(SendReply).queue_offset for one in asked]
        assert offsets == [1, LARGE + 1, LARGE + 2, 2 * LARGE + 2, 2 * LARGE + 4]


@looped
@pytest.mark.usefixtures("short_turns")
async def test_a_large_batch_has_its_own_offsets_whoever_else_appends(tmp_path: Path):
    """Timers, commits and consumers' returns do not wait for sends."""
    async with running(tmp_path) as (app, client):
        await client.ask(sending("t"), b"before")
        (stored,) = (await client.ask(pulling("t"))).messages()
        waiting = app.node.pending_sends.waiting
        asked = asyncio.create_task(client.ask(sending("t", batch=True), batch(LARGE)))
        await until(lambda: waiting)
        partition = app.node.topics.get("t").partitions[0]
        chunk = partition.read_now(0, 1, 0)
        record = Record(bytes(chunk.data[0]), 0, [])
        partition.append([record], stored.store_ms, lambda *_: None)
        assert waiting
        assert (await asked).read(SendReply).queue_offset == 2
        assert (await client.ask(sending("t"), b"z")).read(
            SendReply
        ).queue_offset == LARGE + 2
        found = await all_of(client, "t")
        assert [one.queue_offset for one in found[2:]] == list(range(2, LARGE + 3))


@looped
@pytest.mark.usefixtures("short_turns")
async def test_of_a_large_batch_that_is_refused_nothing_is_stored(tmp_path: Path):
    delayed = batch(1, properties.dump({"DELAY": "3"}))
    refused = {
        "batch entry 8000 of 23 bytes; allowed: 22 to 22": batch(8000)
        + batch(1, "")[:-1],
        "a delay is not supported for messages of a batch": batch(3000) + delayed,
        "more than 8192 messages in a batch; allowed: 8192": batch(9000) + batch(1, ""),
    }
    async with running(tmp_path) as (app, client):
        await client.ask(sending("t"), b"before")
        for remark, body in refused.items():
            answer = await client.ask(sending("t", batch=True), body)
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert answer.remark == remark
        assert app.node.topics.get("t").partitions[0].next_offset == 1


class Slices:
    """What is taken apart, and in which tick of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._tick = 0
        self._loop = asyncio.get_running_loop()
        self.taken: list[tuple[int, bytes]] = []
        for module in (batches, publisher, send_batch):
            monkeypatch.setattr(module, "decode_batch", self._decode)
        self._count()

    def _count(self) -> None:
        self._tick += 1
        self._loop.call_soon(self._count)

    def _decode(self, data: bytes, before: int = 0) -> list[BatchEntry]:
        self.taken.append((self._tick, data))
        return decode_batch(data, before)

    def look(self, body: bytes) -> None:
        """See that all was taken apart once, a little in each tick."""
        ticks, parts = zip(*self.taken, strict=True)
        assert b"".join(parts) == body
        assert len(parts) > 4
        assert len(set(ticks)) == len(ticks)
        for part in parts:
            assert count_up_to(SLICE_MESSAGES + 1, part) <= SLICE_MESSAGES
            assert len(part) < SLICE_BYTES + 32 * 1024
        self.taken.clear()


@looped
@pytest.mark.usefixtures("short_turns")
@pytest.mark.parametrize(("count", "properties_"), [(LARGE // 2, 0), (40, 4000)])
async def test_others_go_on_while_much_is_sent_staged_and_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, properties_: int
):
    """Before, 4 MiB of short properties took 109 ms, and to deliver a batch took 51."""
    async with running(tmp_path) as (_, client):
        await client.ask(sending("t"), b"before")
        slices = Slices(monkeypatch)
        body = batch(count, "".join(f"{n:x}\x01v\x02" for n in range(properties_)))
        assert (await client.ask(sending("t", batch=True), body)).code == 0
        slices.look(body)
        stage = Stage(producer_id="sink", topic="t", queue_id=0)
        offset = (await client.ask(stage, body)).read(StageReply).offset
        slices.look(body)
        named = json.dumps({"staged": {"broker-0": [offset]}}).encode()
        commit = CommitBatch(producer_id="sink", batch_id=0)
        assert (await client.ask(commit, named)).code == 0
        slices.look(body)
        bodies = [b"%d" % n for n in range(count)]
        found = await all_of(client, "t")
        assert [one.body for one in found] == [b"before", *bodies, *bodies]


@looped
async def test_a_large_batch_that_waits_for_too_long_is_refused(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        body = batch(LARGE)
        assert (await client.ask(sending("t", batch=True), body)).code == 0
        # Not for the first one, which may be late on a busy machine.
        app.node.fair_queue.wait_s = 0.001
        flow = app.node.fair_queue.flow("127.0.0.1")
        async with flow.large:
            asked = asyncio.create_task(client.ask(sending("t", batch=True), body))
            # What it will be made of counts from when it stands in line.
            await until(lambda: flow.waiting_bytes > 2 * len(body))
            began = time.monotonic()
            await until(lambda: time.monotonic() > began + 0.002)
        answer = await asked
        assert answer.code == ResponseCode.SYSTEM_BUSY
        assert "sends wait for" in answer.remark
        assert answer.remark.endswith("ms; allowed: 1")
        assert app.node.topics.get("t").partitions[0].next_offset == LARGE
