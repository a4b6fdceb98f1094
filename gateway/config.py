"""The one configuration, frozen; every key of the sample file is a member here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[%|a-zA-Z0-9_-]{1,127}$")]
"""What can also be a topic's name: there are topics named like cluster and broker."""
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]

DEFAULT_PORT = 9876
"""RocketMQ's name server port; each listener answers for name server and broker."""

DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""MessageStoreConfig.messageDelayLevel, RocketMQ 5.3.4."""


class ConfigError(Exception):
    """A setting cannot be used; the text says which, what came, what is allowed."""


class ListenerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address to listen on, and the one that clients are told to use."""

    host: str = "127.0.0.1"
    port: Port = DEFAULT_PORT
    advertised_host: str | None = None
    """What routes and message ids say; the host itself where it is not given."""
    advertised_port: Port | None = None


class TlsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files for TLS, which is offered on every port beside plain text."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Where it is given, TLS clients must show a certificate that it signed."""
    required: bool = False
    """Refuse plain text."""


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one client may take of the node."""

    frame_bytes: Positive = 16 * 1024 * 1024
    """Longest frame: com.rocketmq.remoting.frameMaxLength's default."""
    message_bytes: Positive = 4 * 1024 * 1024
    """Longest body: maxMessageSize's default."""
    connections: Positive = 100_000
    requests_in_flight: Positive = 4096
    """Requests of one connection being worked on; more are not read until then."""
    send_wait_ms: Positive = 200
    """A send that waits longer to be begun is refused as busy, and so is every send
    while the disk takes longer: waitTimeMillsInSendQueue's default."""
    waiting_bytes: Positive = 64 * 1024 * 1024
    """Requests of all connections that wait to be begun; above, less is read. And
    messages that wait for the disk; above, sends are refused as busy."""
    held_pulls: Positive = 100_000
    """Waiting pulls of the node; one more is answered at once as if it timed out."""
    write_buffer_bytes: Positive = 8 * 1024 * 1024
    """Unsent answers of one connection; above, nothing more is read from it."""
    slow_readers_bytes: Positive = 512 * 1024 * 1024
    """Full write buffers of one listener; for one more, the connection is closed that
    has had a full one for longest."""
    slow_reader_ms: Positive = 60_000
    """A connection that has not taken a full buffer for so long is closed."""
    idle_ms: Positive = 120_000
    """A connection without a byte for so long is closed, as a real broker does."""
    handshake_ms: Positive = 10_000
    """Where TLS is offered: time for the first byte, and for the handshake."""


class LogConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the embedded log keeps messages."""

    flush: Literal["async", "sync"] = "async"
    """When a send is acknowledged: when the operating system has the message, so
    that it survives a kill of this process; or when the disk has it."""
    segment_bytes: Positive = 128 * 1024 * 1024
    retention_hours: Annotated[float, msgspec.Meta(gt=0)] = 72.0
    """Segments whose last message is older are deleted."""
    retention_bytes: Positive | None = None
    """Oldest segments are deleted while the log is larger."""
    tail_cache_bytes: Positive = 64 * 1024 * 1024
    on_damage: Literal["refuse", "skip"] = "refuse"
    """What to do at start when records in the middle of the log are unreadable."""


class PulsarConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages are kept when Pulsar keeps them."""

    service_url: str = "pulsar://127.0.0.1:6650"
    """Brokers or proxies; pulsar+ssl:// for TLS; several with commas in between."""
    admin_url: str = "http://127.0.0.1:8080"
    """The same cluster's admin REST."""
    token_file: Path | None = None
    """The token to sign in with; read anew for each connection."""
    ca_certificate: Path | None = None
    """Who signed Pulsar's certificates; the system's own where it is not given."""
    tenant: str = "public"
    """Of topics whose names have none."""
    namespace: str = "default"
    """Of topics whose names have none."""
    namespaces: tuple[str, ...] = ()
    """Further ones that topics are served from, each `tenant/namespace`."""
    prepare: bool = True
    """Make the namespace, and set what it must have, where something is missing."""


class ZooKeeperConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How ZooKeeper is reached where `routes` are there."""

    session_ms: Positive = 6000
    """How long after a node has died another takes over."""
    user: str = ""
    """For its digest scheme: what is stored with a user is for it alone."""
    password_file: Path | None = None
    ca_certificate: Path | None = None
    """With it connections speak TLS: who signed the servers' certificates."""
    certificate: Path | None = None
    """Ours, where the servers ask for one."""
    key: Path | None = None


class TopicsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How topics and groups come to be."""

    auto_create: bool = True
    """Make a topic when somebody sends to it."""
    auto_create_groups: bool = True
    default_queues: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    """Queues of TBW102: the most that an automatic topic gets."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a node is told."""

    data: Path = Path("ropeway-data")
    routes: str | None = None
    """Where topics, groups and settings are: zookeeper://host:port,host:port/path; or
    the file where processes of this machine share one, each as a broker of its own;
    `routes.db` in `data` where it is not given."""
    listeners: tuple[ListenerConfig, ...] = (ListenerConfig(),)
    cluster: Name = "DefaultCluster"
    broker: Name = "broker-0"
    """The broker's name in the route."""
    node: str | None = None
    """Which of the broker's nodes this is, and the same again after a restart; its
    first listener's advertised address where it is not given."""
    replication_num: Positive | None = None
    """Nodes that a broker is to have: this one joins the first broker with fewer, of
    those named like `broker`. Where it is not given, it serves `broker` itself."""
    region: str = "DefaultRegion"
    tls: TlsConfig | None = None
    limits: LimitsConfig = LimitsConfig()
    log: LogConfig = LogConfig()
    pulsar: PulsarConfig | None = None
    """Where it is given, messages and offsets are kept on Pulsar, not in `data`."""
    zookeeper: ZooKeeperConfig = ZooKeeperConfig()
    topics: TopicsConfig = TopicsConfig()
    delay_levels: str = DEFAULT_DELAY_LEVELS
    shutdown_ms: Positive = 10_000
    """Time for requests in flight at shutdown."""
