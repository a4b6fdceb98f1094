"""How much is written and read, by topic and by group."""

import msgspec
import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.broker_admin import ViewBrokerStatsData
from tests.remoting import looped, running
from tests.requests import pulling, sending


def viewing(name: str, key: str) -> ViewBrokerStatsData:
    return ViewBrokerStatsData(stats_name=name, stats_key=key)


@looped
async def test_messages_count_when_they_are_written_and_when_they_are_read(tmp_path):
    async with running(tmp_path) as (app, client):
        for _ in range(3):
            await client.ask(sending("orders"), b"one")
        partition = app.node.topics.get("orders").partitions[0]
        chunk = await partition.read(0, 3, 1 << 20)
        written = sum(map(len, chunk.data))
        await client.ask(pulling("orders", 1))
        for name, key, expected in (
            ("TOPIC_PUT_NUMS", "orders", 3),
            ("TOPIC_PUT_SIZE", "orders", written),
            ("GROUP_GET_NUMS", "orders@readers", 2),
            ("BROKER_PUT_NUMS", "DefaultCluster", 3),
            ("BROKER_GET_NUMS", "DefaultCluster", 2),
        ):
            answer = await client.ask(viewing(name, key))
            stats = msgspec.json.decode(answer.body)
            for period in ("statsMinute", "statsHour", "statsDay"):
                assert stats[period]["sum"] == expected, name
                assert stats[period]["tps"] > 0, name


@looped
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("TOPIC_PUT_NUMS", "none"),
        ("TOPIC_PUT_NUMS", "TBW102"),
        ("GROUP_GET_NUMS", "TBW102@none"),
        ("TOPIC_PUT_SIZE", "TBW102"),
        ("", ""),
    ],
)
async def test_what_was_not_counted_is_said_not_to_be_there(tmp_path, name, key):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(viewing(name, key))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark.startswith(f"The stats <{name}> <{key}> not exist: ")
        assert (
            "counted are TOPIC_PUT_NUMS, TOPIC_PUT_SIZE, GROUP_GET_NUMS"
            in answer.remark
        )
