"""What a broker and a name server say of themselves: state, settings, chores.

What a real broker counts and we do not is told as nothing: tools read all figures or
none.

Source: AdminBrokerProcessor.java and DefaultRequestProcessor.java, RocketMQ 5.3.4;
BrokerRuntimeStats.java, rocketmq-exporter 0.0.3.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway import __version__
from ropeway.gateway.node.traffic import BROKER_GET_NUMS, BROKER_PUT_NUMS
from ropeway.gateway.processors.context import Answer, Context
from ropeway.gateway.processors.needs import GET, UPDATE, on_cluster
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import admin_bodies, bodies
from ropeway.gateway.wire.codes import ROPEWAY_VERSION
from ropeway.gateway.wire.commands.broker_admin import (
    BrokerConfigReply,
    CleanExpiredConsumeQueue,
    CleanUnusedTopic,
    DeleteExpiredCommitLog,
    GetBrokerConfig,
    GetBrokerRuntimeInfo,
)
from ropeway.gateway.wire.commands.namesrv_admin import GetNamesrvConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ropeway.gateway.config import Config

_NOT_HERE = {
    # Nothing waits for a thread, as there are no pools of them.
    "ackThreadPoolQueueHeadWaitTimeMills": "0",
    "ackThreadPoolQueueSize": "0",
    "pageCacheLockTimeMills": "0",
    "pullThreadPoolQueueCapacity": "0",
    "pullThreadPoolQueueHeadWaitTimeMills": "0",
    "pullThreadPoolQueueSize": "0",
    "queryThreadPoolQueueCapacity": "0",
    "queryThreadPoolQueueHeadWaitTimeMills": "0",
    "queryThreadPoolQueueSize": "0",
    "sendThreadPoolQueueCapacity": "0",
    "sendThreadPoolQueueSize": "0",
    # Nor is there one CommitLog for all queues, or what is made of it later.
    "commitLogMaxOffset": "0",
    "commitLogMinOffset": "0",
    "dispatchBehindBytes": "0",
    "dispatchMaxBuffer": "0",
    "remainHowManyDataToFlush": "0 B",
    "remainTransientStoreBufferNumbs": "0",
    # Not counted, which would take time with each message.
    "earliestMessageTimeStamp": "-1",
    "getMessageEntireTimeMax": "0",
    "getMissTps": "0.00 0.00 0.00",
    "putMessageAverageSize": "0.0",
    "putMessageDistributeTime": "null",
    "putMessageEntireTimeMax": "0",
    "putMessageSizeTotal": "0",
}
"""As a real broker says it that has none of these."""
_NO_DISK = {
    "commitLogDirCapacity": "Total : 0.0 GiB, Free : 0.0 GiB.",
    "commitLogDiskRatio": "-1",
    "consumeQueueDiskRatio": "-1",
}
"""Messages are on disks of others. A real broker says -1 of what it cannot look at."""

_FLUSH = {"async": "ASYNC_FLUSH", "sync": "SYNC_FLUSH"}


@handles(GetBrokerRuntimeInfo, on_cluster(GET), anywhere=True)
async def get_runtime_info(_: GetBrokerRuntimeInfo, context: Context) -> Answer:
    """How the broker does."""
    node = context.node
    await node.traffic.look()
    seconds = (now_ms() - node.started_ms) // 1000
    written, read = node.traffic.written, node.traffic.read
    gets = _rates(node.traffic.rates(BROKER_GET_NUMS))
    facts = {
        "bootTimestamp": str(node.started_ms),
        "brokerActive": "true",
        "brokerVersion": str(ROPEWAY_VERSION),
        "brokerVersionDesc": f"Ropeway {__version__}",
        **_disk(node.config),
        # What is not found is not counted.
        **dict.fromkeys(("getFoundTps", "getTotalTps", "getTransferredTps"), gets),
        "msgGetTotalTodayMorning": str(read.this_morning),
        "msgGetTotalTodayNow": str(read.now),
        "msgGetTotalYesterdayMorning": str(read.yesterday_morning),
        "msgPutTotalTodayMorning": str(written.this_morning),
        "msgPutTotalTodayNow": str(written.now),
        "msgPutTotalYesterdayMorning": str(written.yesterday_morning),
        "putMessageTimesTotal": str(written.now),
        "putTps": _rates(node.traffic.rates(BROKER_PUT_NUMS)),
        "runtime": (
            f"[ {seconds // 86400} days, {seconds // 3600 % 24} hours, "
            f"{seconds // 60 % 60} minutes, {seconds % 60} seconds ]"
        ),
        **_NOT_HERE,
        "sendThreadPoolQueueHeadWaitTimeMills": str(node.log.overdue_ms()),
        "startAcceptSendRequestTimeStamp": str(node.started_ms),
    }
    return Answer(body=bodies.encode(admin_bodies.KvTable(facts)))


def _disk(config: Config) -> dict[str, str]:
    """How full the disk is, where messages are on ours."""
    if config.pulsar is not None:
        return _NO_DISK
    disk = shutil.disk_usage(config.data)
    return {
        "commitLogDirCapacity": (
            f"Total : {_gib(disk.total)}, Free : {_gib(disk.free)}."
        ),
        "commitLogDiskRatio": (ratio := f"{disk.used / disk.total:.4f}"),
        "consumeQueueDiskRatio": ratio,
    }


def _rates(rates: Iterable[float]) -> str:
    return " ".join(f"{rate:.2f}" for rate in rates)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


@handles(GetBrokerConfig, on_cluster(GET), anywhere=True)
def get_broker_config(_: GetBrokerConfig, context: Context) -> Answer:
    """Our settings, as far as a real broker has the same under its own names."""
    config = context.node.config
    host, __, port = context.peer.advertised.rpartition(":")
    settings = {
        "autoCreateSubscriptionGroup": _flag(config.topics.auto_create_groups),
        "autoCreateTopicEnable": _flag(config.auto_create),
        "brokerClusterName": config.cluster,
        "brokerIP1": host,
        "brokerId": "0",
        "brokerName": config.broker,
        "brokerRole": "ASYNC_MASTER",
        "defaultTopicQueueNums": str(config.topics.default_queues),
        "fileReservedTime": f"{config.log.retention_hours:g}",
        "flushDiskType": _FLUSH[config.log.flush],
        "listenPort": port,
        "mappedFileSizeCommitLog": str(config.log.segment_bytes),
        "maxMessageSize": str(config.limits.message_bytes),
        "messageDelayLevel": config.delay_levels,
        "regionId": config.region,
        "storePathRootDir": str(config.data),
        **{
            name: _flag(is_on)
            for name, is_on in context.node.pop.switches.shown().items()
        },
    }
    data_version = bodies.encode(admin_bodies.DataVersion()).decode()
    return Answer(header=BrokerConfigReply(version=data_version), body=_lines(settings))


@handles(GetNamesrvConfig, on_cluster(GET), anywhere=True)
def get_namesrv_config(_: GetNamesrvConfig, context: Context) -> Answer:
    """Our settings, as far as a real name server has the same."""
    host, __, port = context.peer.advertised.rpartition(":")
    return Answer(body=_lines({"bindAddress": host, "listenPort": port}))


def _flag(value: object) -> str:
    return str(value).lower()


def _lines(settings: Mapping[str, str]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in settings.items()).encode()


@handles(CleanExpiredConsumeQueue, on_cluster(UPDATE))
@handles(CleanUnusedTopic, on_cluster(UPDATE))
@handles(DeleteExpiredCommitLog, on_cluster(UPDATE))
def clean(_: object, __: Context) -> Answer:
    """A chore that the log does by itself, all the time."""
    return Answer()
