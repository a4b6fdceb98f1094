"""A reader whose consumer goes: opened again, or ended where that would not help."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ropeway.storage.pulsar.commands import (
    CloseConsumer,
    Delivery,
    MessageId,
    Subscribe,
    Success,
    encode_command,
)
from ropeway.storage.pulsar.compression import COMPRESSIONS
from ropeway.storage.pulsar.errors import EntryError, PulsarUnavailableError
from ropeway.storage.pulsar.frames import payload_frame
from tests.remoting import looped
from tests.storage.pulsar.test_reader import LEDGER, TIMEOUT_S, reading


@looped
async def test_a_consumer_that_is_closed_while_it_opens_is_opened_again():
    async with reading() as one:
        subscribe = one.subscribe

        def close_first(peer, asked):
            one.broker.answers[Subscribe] = subscribe
            peer.tell(Success(asked.request_id))
            peer.tell(CloseConsumer(asked.consumer_id, -1))

        one.broker.answers[Subscribe] = close_first
        await one.open(permits=2)
        assert await one.until(2) == [0, 1]
        assert len(one.broker.of(Subscribe)) == 2


@looped
async def test_an_entry_that_is_none_ends_the_reader_and_not_its_connection():
    async with reading() as one:
        await one.open(permits=2)
        await one.until(2)
        (asked,) = one.broker.of(Subscribe)
        command = encode_command(Delivery(asked.consumer_id, MessageId(LEDGER, 2)))
        frame = payload_frame(command, b"\xff", [b""])
        one.broker.peers[0].transport.write(b"".join(frame))
        await one.until(3)
        (error,) = one.lost
        assert isinstance(error, EntryError)
        assert str(error).startswith("the entry at ")
        await one.broker.wait(CloseConsumer, 1)
        assert not one.broker.peers[0].transport.is_closing()
        with pytest.raises(EntryError):
            await one.reader.last_position()


@looped
async def test_who_asks_while_no_broker_has_the_topic_is_told_in_time():
    async with reading() as one:
        reader = await one.open(permits=1)
        await one.until(1)
        one.broker.refuse(Subscribe, 6)
        (asked,) = one.broker.of(Subscribe)
        one.broker.peers[0].tell(CloseConsumer(asked.consumer_id, -1))
        await one.broker.wait(Subscribe, 2)
        one.client.request_timeout_s = 0.05
        with pytest.raises(PulsarUnavailableError, match=r"no broker in 0\.05 s"):
            await reader.last_position()
        assert one.lost == []


@looped
async def test_nothing_is_given_from_the_moment_that_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
):
    goes_on = threading.Event()
    undo = COMPRESSIONS[2][1]

    def waiting(data: memoryview, size_bytes: int) -> memoryview:
        assert goes_on.wait(TIMEOUT_S)
        return undo(data, size_bytes)

    monkeypatch.setitem(COMPRESSIONS, 2, ("ZLIB", waiting))
    held = []
    try:
        async with reading() as one:
            one.long = {1}
            reader = await one.open()
            assert await one.until(1) == [0]
            one.broker.answers[CloseConsumer] = lambda *asked: held.append(asked)
            closing = asyncio.ensure_future(reader.close())
            await one.broker.wait(CloseConsumer, 1)
            inflating = reader._inflating
            goes_on.set()
            assert inflating is not None
            await inflating
            assert one.came == [0]
            ((peer, asked),) = held
            peer.tell(Success(asked.request_id))
            await closing
    finally:
        goes_on.set()
