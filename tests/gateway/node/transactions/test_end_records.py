"""Records of ended transactions: those that count are read as they were written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.transactions import end_records
from ropeway.gateway.node.transactions.end_records import End, Ended
from ropeway.gateway.wire import message
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message import Message
from tests.gateway.node.transactions.place import ENDS, HOST, place
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


async def write(one, *written: Ended) -> None:
    topic = one.app.node.topics.get(ENDS)
    partition = topic.partitions[0]
    for ended in written:
        stored = asyncio.get_running_loop().create_future()
        record = end_records.record(
            ended, topic, partition.next_offset, one.clock.ms, HOST
        )
        partition.append([record], one.clock.ms, lambda *_, to=stored: to.set_result(0))
        await stored


async def read(one, half_offset: int) -> list[Ended]:
    partition = one.partition(ENDS)
    return [ended async for ended in end_records.read_from(partition, half_offset)]


@looped
async def test_records_that_count_are_read_and_no_others(tmp_path: Path):
    async with place(tmp_path) as one:
        await one.service.make_topics()
        written = [
            Ended(list(End)[number % 3], (number, number + 1), 10 * (number // 2))
            for number in range(50)
        ]
        await write(one, *written)
        for half_offset in (0, 1, 9, 10, 11, 100, 239, 240, 1000):
            counting = [each for each in written if each.half_end > half_offset]
            assert await read(one, half_offset) == counting


@looped
async def test_no_records_are_no_ends(tmp_path: Path):
    async with place(tmp_path) as one:
        await one.service.make_topics()
        assert await read(one, 0) == []


def stored(body: bytes, properties: str) -> bytes:
    return message.encode(
        Message(
            topic=ENDS,
            queue_id=0,
            queue_offset=0,
            message_id=0,
            body=body,
            properties=properties,
        )
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        stored(b"1,", ""),
        stored(b"1,", "END\x01COMMITTED\x02"),
        stored(b"1,", "END\x01OTHER\x02HALF_END\x011\x02"),
        stored(b"one,", "END\x01COMMITTED\x02HALF_END\x011\x02"),
        stored(b"\xff,", "END\x01COMMITTED\x02HALF_END\x011\x02"),
    ],
)
def test_what_is_no_record_is_refused(data: bytes):
    with pytest.raises(MessageError):
        end_records.parse(data)
