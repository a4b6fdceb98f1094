"""A real RocketMQ 5.5.0 name server and broker, to compare with."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import builds
from tests.starts import started_again
from tests.system.process import (
    ForeignProcess,
    free_ports,
    listens,
    ports_in_a_row,
    route_code,
)

HERE = Path(__file__).parent
VERSION = os.environ.get("ROPEWAY_ROCKETMQ_VERSION", "")
"""Of the broker, its store, remoting and common; empty for 5.5.0."""
CLUSTER = "DefaultCluster"
HEAP = ["-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:MaxDirectMemorySize=256m"]
"""What such a broker is given of memory."""
QUICK = ["-XX:TieredStopAtLevel=1"]
"""A server that lives for minutes starts sooner with less of it compiled."""
NAMESRV = ["-Xms128m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:MaxDirectMemorySize=256m"]
FLUSH_MS = 500
"""A broker flushes its counts of transactions so often; until it has done so once, a
thread of it asks for the time and nothing else (TransactionMetricsFlushService, 5.5.0):
with its own 10 s it is up after 12 s of CPU, and not 4.
"""
SMALL = {
    "mappedFileSizeCommitLog": str(64 * 1024 * 1024),
    # Each flush compares 39 MB of its timer wheel byte by byte (TimerWheel, 5.5.0):
    # with its own 1 s, a broker that nobody uses takes a tenth of a core.
    "timerFlushIntervalMs": "30000",
}
"""Settings of a broker that only has to be right."""
JAVA = [
    "java",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "-Dio.netty.availableProcessors=2",
]
NAMESRV_CONF = """\
listenPort={name_port}
bindAddress=127.0.0.1
kvConfigPath={directory}/kvConfig.json
configStorePath={directory}/namesrv.properties
"""
BROKER_CONF = """\
brokerClusterName={cluster}
brokerName=broker-0
brokerId=0
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
recallMessageEnable=true
bindAddress=127.0.0.1
listenPort={broker_port}
haListenPort={ha_port}
namesrvAddr=127.0.0.1:{name_port}
brokerRole=ASYNC_MASTER
storePathRootDir={directory}/store
storePathCommitLog={directory}/store/commitlog
diskMaxUsedSpaceRatio=95
waitTimeMillsInSendQueue=60000
waitTimeMillsInPullQueue=60000
waitTimeMillsInAckQueue=60000
waitTimeMillsInTransactionQueue=60000
osPageCacheBusyTimeOutMills=60000
transactionMetricFlushInterval={flush_ms}
{settings}
"""


def transactions(check_ms: int) -> dict[str, str]:
    """Settings with which producers are asked so often how transactions ended."""
    return {
        "transactionTimeOut": str(check_ms),
        "transactionCheckInterval": str(check_ms),
        "transactionCheckMax": "1000",
    }


def access_control(user: str, secret: str) -> dict[str, str]:
    """Settings of a broker that checks who asks (ACL 2.0), and has one superuser."""
    auth = "org.apache.rocketmq.auth"
    return {
        "authenticationEnabled": "true",
        "authenticationProvider": (
            f"{auth}.authentication.provider.DefaultAuthenticationProvider"
        ),
        "authenticationMetadataProvider": (
            f"{auth}.authentication.provider.LocalAuthenticationMetadataProvider"
        ),
        "initAuthenticationUser": json.dumps({"username": user, "password": secret}),
        "innerClientAuthenticationCredentials": json.dumps(
            {"accessKey": user, "secretKey": secret}
        ),
        "authorizationEnabled": "true",
        "authorizationProvider": (
            f"{auth}.authorization.provider.DefaultAuthorizationProvider"
        ),
        "authorizationMetadataProvider": (
            f"{auth}.authorization.provider.LocalAuthorizationMetadataProvider"
        ),
    }


class RocketMQ:
    """A name server and a broker, two processes on 127.0.0.1.

    Args:
        directory: for data, settings and logs; kept over stop and start.
        sync_flush: acknowledge a message when the disk has it.
        auto_create: make a topic when somebody sends to it.
        check_ms: when producers are asked how transactions ended, and how often.
        broker_java: the broker's heap and collector.
        settings: more lines of the broker's own configuration.
        joins: whose name server the broker tells of itself; then there is none here.
    """

    name = "RocketMQ 5.5.0"

    def __init__(
        self,
        directory: Path,
        *,
        sync_flush: bool = False,
        auto_create: bool = True,
        tls: tuple[Path, Path] | None = None,  # noqa: ARG002 - it makes its own
        check_ms: int | None = None,
        broker_java: Sequence[str] = (*HEAP, *QUICK),
        settings: Mapping[str, str] = SMALL,
        joins: "RocketMQ | None" = None,
    ) -> None:
        self._joins = joins
        self._directory = directory
        self._broker_java = broker_java
        # A broker also listens two ports below its own.
        _, self._ha_port, self._broker_port = ports_in_a_row(3)
        self._name_port = joins._name_port if joins else free_ports(1)[0]
        self._settings = {
            "flushDiskType": "SYNC_FLUSH" if sync_flush else "ASYNC_FLUSH",
            "autoCreateTopicEnable": str(auto_create).lower(),
            **settings,
            **(transactions(check_ms) if check_ms is not None else {}),
        }
        self._running: list[ForeignProcess] = []

    @property
    def name_server(self) -> str:
        """Where clients ask for routes."""
        return f"127.0.0.1:{self._name_port}"

    @property
    def broker_port(self) -> int:
        """Where clients send and pull."""
        return self._broker_port

    @property
    def broker_pid(self) -> int:
        """The process id of the running broker."""
        return self._running[-1].pid

    @property
    def log_files(self) -> Path:
        """The folder of the files with all messages."""
        return self._directory / "store" / "commitlog"

    @started_again
    def start(self) -> None:
        """Start what is this one's, and return when a client could send."""
        # What is left of a start that failed.
        self.kill()
        self._directory.mkdir(parents=True, exist_ok=True)
        self._write("namesrv.conf", NAMESRV_CONF)
        self._write("broker.conf", BROKER_CONF)
        if self._joins is None:
            namesrv = self._java(
                "namesrv", "namesrv.NamesrvStartup", [*NAMESRV, *QUICK]
            )
            namesrv.wait_until(lambda: listens(self._name_port))
        own = self._settings.get("brokerName", CLUSTER)
        broker = self._java("broker", "broker.BrokerStartup", self._broker_java)
        broker.wait_until(
            lambda: listens(self._broker_port) and route_code(self._name_port, own) == 0
        )

    def stop(self) -> None:
        """Stop both in order: the broker takes itself out of the routes first."""
        while self._running:
            self._running.pop().stop()

    def kill(self) -> None:
        """End both without warning."""
        while self._running:
            self._running.pop().kill()

    def _java(
        self,
        name: str,
        main_class: str,
        java: Sequence[str],
        options: Sequence[str] = (),
        *,
        shares: bool = True,
    ) -> ForeignProcess:
        process = ForeignProcess(
            name,
            [
                *JAVA,
                *java,
                f"-Duser.home={self._directory}",
                f"-Drocketmq.home.dir={self._directory}",
                "-cp",
                self._classpath(),
                f"org.apache.rocketmq.{main_class}",
                *(options or ("-c", str(self._directory / f"{name}.conf"))),
            ],
            self._directory,
            # The ports for replicas and for gRPC have no setting for their address.
            {"LD_PRELOAD": str(builds.shared_object(HERE / "bind_loopback.c"))},
            shares=shares,
        )
        self._running.append(process)
        return process

    def _classpath(self) -> str:
        return builds.classpath(HERE / "rocketmq.xml", VERSION)

    def _write(self, name: str, template: str) -> None:
        text = template.format(
            cluster=CLUSTER,
            name_port=self._name_port,
            broker_port=self._broker_port,
            ha_port=self._ha_port,
            flush_ms=FLUSH_MS,
            directory=self._directory,
            settings="\n".join(
                f"{key}={value}" for key, value in self._settings.items()
            ),
        )
        (self._directory / name).write_text(text)
