"""What a node says of itself."""

import re

import msgspec
import pytest

from ropeway.gateway import __version__
from ropeway.gateway.config import LogConfig
from ropeway.gateway.processors import broker_info
from ropeway.gateway.pulsar_config import PulsarConfig
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.broker_admin import (
    BrokerConfigReply,
    GetBrokerConfig,
    GetBrokerRuntimeInfo,
)
from ropeway.gateway.wire.commands.namesrv_admin import GetNamesrvConfig
from tests.remoting import looped, running
from tests.requests import pulling, sending


@looped
async def test_runtime_facts_are_what_cluster_list_needs(tmp_path):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(GetBrokerRuntimeInfo())
        facts = msgspec.json.decode(answer.body)["table"]
        assert facts["brokerVersionDesc"] == f"Ropeway {__version__}"
        assert facts["brokerActive"] == "true"
        assert facts["bootTimestamp"] == str(app.node.started_ms)
        assert 0 <= float(facts["commitLogDiskRatio"]) <= 1
        assert facts["runtime"].startswith("[ 0 days, 0 hours, ")


@looped
async def test_what_was_written_and_read_is_in_the_runtime_facts(tmp_path):
    async with running(tmp_path) as (_, client):
        for _ in range(3):
            await client.ask(sending("orders"), b"one")
        await client.ask(pulling("orders", 1))
        answer = await client.ask(GetBrokerRuntimeInfo())
        facts = msgspec.json.decode(answer.body)["table"]
        assert facts["msgPutTotalTodayNow"] == "3"
        assert facts["msgGetTotalTodayNow"] == "2"
        for name in ("msgPutTotalTodayMorning", "msgGetTotalYesterdayMorning"):
            assert facts[name] == "0"
        for name in ("putTps", "getTransferredTps"):
            assert all(float(rate) > 0 for rate in facts[name].split(" "))


OF_EXPORTER = (
    "bootTimestamp",
    "brokerVersion",
    "commitLogMaxOffset",
    "commitLogMinOffset",
    "dispatchBehindBytes",
    "dispatchMaxBuffer",
    "earliestMessageTimeStamp",
    "getMessageEntireTimeMax",
    "msgGetTotalTodayMorning",
    "msgGetTotalTodayNow",
    "msgGetTotalYesterdayMorning",
    "msgPutTotalTodayMorning",
    "msgPutTotalTodayNow",
    "msgPutTotalYesterdayMorning",
    "pageCacheLockTimeMills",
    "pullThreadPoolQueueCapacity",
    "pullThreadPoolQueueHeadWaitTimeMills",
    "pullThreadPoolQueueSize",
    "putMessageEntireTimeMax",
    "putMessageSizeTotal",
    "putMessageTimesTotal",
    "queryThreadPoolQueueCapacity",
    "queryThreadPoolQueueHeadWaitTimeMills",
    "queryThreadPoolQueueSize",
    "remainTransientStoreBufferNumbs",
    "sendThreadPoolQueueCapacity",
    "sendThreadPoolQueueHeadWaitTimeMills",
    "sendThreadPoolQueueSize",
    "startAcceptSendRequestTimeStamp",
)
"""What it reads as whole numbers; where one is missing, it shows none of a broker."""


@looped
async def test_there_is_all_that_rocketmq_exporter_reads(tmp_path):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(GetBrokerRuntimeInfo())
        here = msgspec.json.decode(answer.body)["table"]
        # Its disks are others': a node on Pulsar.
        config = msgspec.structs.replace(app.node.config, pulsar=PulsarConfig())
    for facts in (here, here | broker_info._disk(config)):
        for name in OF_EXPORTER:
            assert int(facts[name]) >= -1
        for name in ("commitLogDiskRatio", "consumeQueueDiskRatio"):
            assert -1 <= float(facts[name]) <= 1
        assert float(facts["putMessageAverageSize"]) == 0
        assert facts["putMessageDistributeTime"] == "null"
        assert facts["remainHowManyDataToFlush"] == "0 B"
        assert re.fullmatch(
            r"Total : [\d.]+ GiB, Free : [\d.]+ GiB\.", facts["commitLogDirCapacity"]
        )
        for name in ("putTps", "getMissTps", "getTotalTps", "getFoundTps"):
            assert len([float(rate) for rate in facts[name].split(" ")]) == 3


def lines(body: bytes) -> dict[str, str]:
    return dict(line.split("=", 1) for line in body.decode().splitlines())


@looped
async def test_settings_are_given_under_a_real_brokers_names(tmp_path):
    async with running(tmp_path, log=LogConfig(flush="sync")) as (app, client):
        answer = await client.ask(GetBrokerConfig())
        assert msgspec.json.decode(answer.read(BrokerConfigReply).version)
        found = lines(answer.body)
        assert found["brokerName"] == "broker-0"
        assert found["flushDiskType"] == "SYNC_FLUSH"
        assert found["autoCreateTopicEnable"] == "true"
        assert found["listenPort"] == str(app.server.listeners[0].port)
        name_server = lines((await client.ask(GetNamesrvConfig())).body)
        assert name_server["listenPort"] == found["listenPort"]


@looped
@pytest.mark.parametrize(
    "code",
    [
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.CLEAN_UNUSED_TOPIC,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
    ],
)
async def test_chores_that_the_log_does_by_itself_are_done(tmp_path, code):
    async with running(tmp_path) as (_, client):
        assert (await client.ask(code, fields={})).code == 0
