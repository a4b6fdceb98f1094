"""Tables: the last message of each key, and what changes it."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    ResponseError,
    TopicNotFoundError,
    select_by_keys,
)
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER, scenario


@scenario
async def test_a_table_has_what_there_was_and_follows_what_comes(
    ropeway_gateway, topic
):
    server = ropeway_gateway.name_server
    async with (
        Admin(server, config=PATIENT) as admin,
        Producer(server, "p", config=PATIENT_PRODUCER) as producer,
    ):
        await admin.create_topic(topic, 3, attributes={"cleanup.policy": "COMPACTION"})

        async def put(key: str, value: bytes) -> None:
            message = Message(topic, value, keys=tuple(key.split()))
            await producer.send(message, selector=select_by_keys)

        for number in range(40):
            await put(f"key {number % 8}", b"%d" % number)
        await put("key 0", b"")
        wanted = {f"key {n % 8}": b"%d" % n for n in range(33, 40)}
        async with admin.table(topic) as table:
            assert dict(table) == wanted
            (broker,) = await admin.compaction(topic, force=True)
            assert sum(one.messages for one in broker.queues) == 8
            await put("key 0", b"again")
            await put("key 1", b"")
            async with asyncio.timeout(200):
                await table.until(lambda: "key 0" in table and "key 1" not in table)
            assert table["key 0"] == b"again"
            assert table.messages["key 2"].keys == ("key", "2")
        async with producer.table(topic) as table:
            assert len(table) == 7
        newest = await admin.latest(topic, "key 2")
        assert newest is not None
        assert newest.body == b"34"
        assert await admin.latest(topic, "key 1") is None
        assert await admin.latest(topic, "nobody's") is None


@scenario
async def test_what_is_not_compacted_or_not_there_is_said(ropeway_gateway, topic):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(TopicNotFoundError):
            await admin.table(topic).__aenter__()
        await admin.create_topic(topic, 1)
        with pytest.raises(ResponseError, match=r"cleanup\.policy=COMPACTION"):
            await admin.latest(topic, "a")
        async with admin.table(topic) as table:
            assert len(table) == 0
