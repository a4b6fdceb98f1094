"""Ranges of queues, read from Ropeway and from a real broker."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.client import (
    Admin,
    BulkReader,
    Message,
    MessagesGoneError,
    Producer,
)
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER, eventually

COUNT = 50


def test_a_range_is_read_whole_and_what_is_not_there_is_told(
    name_server: str, topic: str, group: str
) -> None:
    async def scenario() -> None:
        async with Admin(name_server, config=PATIENT) as admin:
            await admin.create_topic(topic, 1)
        async with (
            Producer(name_server, group, config=PATIENT_PRODUCER) as producer,
            BulkReader(name_server, group, config=PATIENT) as reader,
        ):
            (queue,) = await reader.queues(topic)
            for number in range(COUNT):
                tag = "even" if number % 2 == 0 else "odd"
                await producer.send(Message(topic, b"%d" % number, tags=tag), queue)
            end = await eventually(
                lambda: reader.end_offset(queue), lambda found: found >= COUNT
            )
            assert (await reader.begin_offset(queue), end) == (0, COUNT)

            async def bodies(begin: int, end: int, expression: str = "*", **more):
                return [
                    int(body)
                    async for columns in reader.read(
                        queue, begin, end, expression, **more
                    )
                    for body in columns.bodies
                ]

            assert await bodies(0, COUNT) == list(range(COUNT))
            assert await bodies(7, 40) == list(range(7, 40))
            assert await bodies(7, 7) == []
            assert await bodies(0, COUNT, "even") == list(range(0, COUNT, 2))
            assert await bodies(0, COUNT, "none") == []
            with pytest.raises(MessagesGoneError, match=f"ends at {COUNT}"):
                await bodies(0, COUNT + 1)
            assert await bodies(45, COUNT + 9, must_be_whole=False) == list(
                range(45, COUNT)
            )
            assert await reader.committed(queue) in (None, 0)
            await reader.commit({queue: 12})
            assert await reader.committed(queue) == 12

    asyncio.run(scenario())
