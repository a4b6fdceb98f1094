"""RocketMQ's broker in Rust, another implementation of the same server.

Source: README.md of the crate rocketmq-broker 1.0.0, which also says how to build it:
`cargo install rocketmq-broker --version 1.0.0 --locked`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.system.process import ForeignProcess, listens, route_code
from tests.system.rocketmq import CLUSTER, NAMESRV, NAMESRV_CONF, QUICK, RocketMQ

if TYPE_CHECKING:
    from pathlib import Path

CONF = """\
[broker]
namesrvAddr = "127.0.0.1:{name_port}"
brokerIp1 = "127.0.0.1"
listenPort = {broker_port}
storePathRootDir = "{directory}/store"
waitTimeMillsInSendQueue = 60000
waitTimeMillsInPullQueue = 60000
[broker.brokerServerConfig]
bindAddress = "127.0.0.1"
[broker.brokerIdentity]
brokerName = "broker-0"
brokerClusterName = "{cluster}"
brokerId = 0
[store]
storeType = "LocalFile"
brokerRole = "ASYNC_MASTER"
storePathRootDir = "{directory}/store"
haListenAddress = "127.0.0.1"
haListenPort = {ha_port}
{settings}
"""
LOCAL = {"ROCKETMQ_SECURITY_PROFILE": "development-insecure-loopback"}
"""Without TLS, on 127.0.0.1 alone, as the others."""


class RustBroker(RocketMQ):
    """A broker in Rust, and a name server in Java, which is not measured.

    Args:
        directory: As RocketMQ's.
        program: The broker's.
        sync_flush: As RocketMQ's.
    """

    name = "RocketMQ-Rust 1.0.0"

    def __init__(
        self, directory: Path, program: Path, *, sync_flush: bool = False
    ) -> None:
        super().__init__(directory, settings={})
        kind = "SYNC_FLUSH" if sync_flush else "ASYNC_FLUSH"
        self._settings = {"flushDiskType": f'"{kind}"'}
        self._program = program

    def start(self) -> None:
        """Start both, and return when a client could send."""
        self.kill()
        self._directory.mkdir(parents=True, exist_ok=True)
        self._write("namesrv.conf", NAMESRV_CONF)
        self._write("broker.toml", CONF)
        namesrv = self._java("namesrv", "namesrv.NamesrvStartup", [*NAMESRV, *QUICK])
        namesrv.wait_until(lambda: listens(self._name_port))
        broker = ForeignProcess(
            "broker",
            [str(self._program), "-c", str(self._directory / "broker.toml")],
            self._directory,
            {**LOCAL, "ROCKETMQ_HOME": str(self._directory)},
        )
        self._running.append(broker)
        broker.wait_until(
            lambda: (
                listens(self._broker_port) and route_code(self._name_port, CLUSTER) == 0
            )
        )
