"""RocketMQ 5.5.0's proxy, which serves gRPC, before its name server and broker."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.starts import started_again
from tests.system.process import free_ports, listens
from tests.system.rocketmq import CLUSTER, QUICK, RocketMQ

SMALL_PROXY = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC"]
"""What a proxy is given that only has to be right."""
STOP_ANYWAY_S = 1
SHORT_POLL_MS = 100
"""A proxy waits for messages for at least 5 s unless it is told otherwise."""


class RocketMQWithProxy(RocketMQ):
    """Name server, broker and proxy, three processes on 127.0.0.1.

    Args:
        directory: as in `RocketMQ`, and so are the others that have names.
        proxy_java: the proxy's heap and collector.
        proxy_settings: more of the proxy's own configuration.
    """

    name = "RocketMQ 5.5.0 with its proxy"

    def __init__(
        self,
        directory: Path,
        *,
        proxy_java: Sequence[str] = (*SMALL_PROXY, *QUICK),
        proxy_settings: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(directory, **given)
        self._home = directory
        self._proxy_java = proxy_java
        self._grpc_port, self._remoting_port = free_ports(2)
        self._proxy_settings = proxy_settings or {}

    @property
    def endpoint(self) -> str:
        """Where gRPC clients go."""
        return f"127.0.0.1:{self._grpc_port}"

    @property
    def proxy_pid(self) -> int:
        """The process id of the running proxy."""
        return self._running[2].pid

    @started_again
    def start(self) -> None:
        """Start all of them, and return when a client could call."""
        super().start()
        settings = {
            "rocketMQClusterName": CLUSTER,
            "namesrvAddr": self.name_server,
            "grpcServerPort": self._grpc_port,
            "remotingListenPort": self._remoting_port,
            "useEndpointPortFromRequest": True,
            "localServeAddr": "127.0.0.1",
            "remotingAccessAddr": "127.0.0.1",
            "grpcClientConsumerMinLongPollingTimeoutMillis": SHORT_POLL_MS,
            "grpcShutdownTimeSeconds": STOP_ANYWAY_S,
            **self._proxy_settings,
        }
        file = self._home / "proxy.json"
        file.write_text(json.dumps(settings))
        proxy = self._java(
            "proxy",
            "proxy.ProxyStartup",
            self._proxy_java,
            ["-n", self.name_server, "-pm", "cluster", "-pc", str(file)],
            # A run starts one: an archive of its classes would be left for nobody.
            shares=False,
        )
        proxy.wait_until(lambda: listens(self._grpc_port))
