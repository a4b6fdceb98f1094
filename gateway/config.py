"""The one configuration, frozen; every key of the sample file is a member here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ropeway.gateway.pulsar_config import BalanceConfig, PulsarConfig
from ropeway.gateway.request_limits import (
    CreationsConfig,
    Positive,
    PullsConfig,
    RequestsConfig,
    UnauthenticatedConfig,
)
from ropeway.gateway.topics_config import MigrationConfig, Name, TopicsConfig

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]

DEFAULT_PORT = 9876
"""RocketMQ's name server port; each listener answers for name server and broker."""

DEFAULT_HTTP_PORT = 8080

DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""MessageStoreConfig.messageDelayLevel, RocketMQ 5.3.4."""


class ConfigError(Exception):
    """A setting cannot be used; the text says which, what came, what is allowed."""


class PackageMissingError(ConfigError):
    """A setting needs a package that is not installed; the text says how to."""


def read_named(path: Path, at: str) -> str:
    """Read a small file that a setting names: a key, a password.

    Args:
        path: The file; UTF-8.
        at: The setting, for errors.

    Raises:
        ConfigError: It cannot be read, or is no text.
    """
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{at}: cannot read {path}") from error


class ListenerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address to listen on, and the one that clients are told to use."""

    host: str = "127.0.0.1"
    port: Port = DEFAULT_PORT
    advertised_host: str | None = None
    """What routes and message ids say; the host itself where it is not given."""
    advertised_port: Port | None = None


class TlsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files for TLS, which is offered on every port beside plain text.

    They are read again when they change, but for `nodes_ca`.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Where it is given, TLS clients show a certificate that it signed."""
    client_certificate: Literal["required", "optional"] = "required"
    """Whether a TLS client without any is refused; a wrong one always is."""
    required: bool = False
    """Refuse plain text. Then nodes speak TLS to each other, too."""
    nodes_ca: Path | None = None
    """Who signed the other nodes' certificates; whom the system trusts, where it is
    not given."""


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
    waiting_bytes: Positive = 32 * 1024 * 1024
    """Requests of all connections that wait to be begun, or for their topic or queue;
    above, less is read. Each gRPC call with one answer counts with 6 KiB beside its
    request until it is answered; above, more of whose client has most are refused. And
    messages that wait for the disk, with 64 bytes for each key; above, sends are
    refused as busy."""
    lite_topics: Positive = 100_000
    """Lite topics that have messages; messages of one more are refused. Each takes
    about 400 bytes of memory, and as many again for each group that consumes it."""
    batch_producers: Positive = 10_000
    """Producers of exactly-once batches that are known, for seven days after their last
    one; commits of one more are refused. Each takes about a kilobyte of memory, and the
    last batches of all are one record of the log."""
    held_pulls: Positive = 100_000
    """Waiting pulls of the node; one more is answered at once as if it timed out."""
    write_buffer_bytes: Positive = 8 * 1024 * 1024
    """Unsent answers of one connection; above, nothing more is read from it."""
    slow_readers_bytes: Positive = 512 * 1024 * 1024
    """Full write buffers of one listener; for one more, the connection is closed that
    has had a full one for longest. And what slow gRPC clients hold, likewise."""
    slow_reader_ms: Positive = 60_000
    """A connection that has not taken a full buffer for so long is closed."""
    idle_ms: Positive = 120_000
    """A connection without a byte for so long is closed, as a real broker does."""
    handshake_ms: Positive = 10_000
    """Where TLS is offered: time for the first byte, and for the handshake."""


class QuotaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each client that is meant may take of a node, on all its connections."""

    of: str = "*"
    """Whose: an address, a network, or a principal as HOOK:NAME with * for any text. *
    alone means each principal where access control is on, and each address else."""
    connections: Positive | None = None
    """One more is closed."""
    requests_per_s: Positive | None = None
    """Beyond that less is read; nothing is refused."""
    bytes_per_s: Positive | None = None
    """Likewise; requests and answers together."""


class LogConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the embedded log keeps messages, or which log does instead."""

    url: str | None = None
    """Where messages are kept instead: its scheme is the name of a plugin (an entry
    point of `ropeway.logs`), and nothing else here counts."""
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
    """What to do at start when records in the middle of the log are unreadable, or are
    nowhere when a tier is listed again."""


class TierConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where old messages of the embedded log are kept, and how."""

    url: str
    """file:///directory, or s3://, az:// or gs:// with bucket and prefix. An object
    store's keys come from the environment, as for its own tools."""
    level: Literal["DISABLE", "NOT_IN_DISK", "NOT_IN_MEM", "FORCE"] = "NOT_IN_DISK"
    """When messages are read from there: never; what the log has deleted; also what it
    would have to get from the disk; all that is there."""
    commit_messages: Positive = 65_536
    """So many messages of a queue are uploaded at once, as one segment."""
    commit_bytes: Positive = 16 * 1024 * 1024
    """Likewise bytes."""
    commit_ms: Positive = 60_000
    """Messages are uploaded at the latest so long after they came."""
    segment_bytes: Positive = 64 * 1024 * 1024
    """Small segments are put together, to no more than that."""
    buffer_bytes: Positive = 64 * 1024 * 1024
    """Memory for messages on their way there."""
    lag_bytes: Positive = 1024 * 1024 * 1024
    """While clients keep the node busy, uploads take a tenth of a processor; once
    so much waits in the log, as much as they need."""
    upload_bytes_per_s: Positive | None = None
    """Uploads are no faster; no limit where it is not given."""
    retention_hours: Annotated[float, msgspec.Meta(gt=0)] | None = 720.0
    """Segments are deleted there so long after their last message came; 30 days. A
    topic's attribute reserve.time, in hours, comes before it."""
    compression: Literal["none", "zstd"] = "none"
    cache_bytes: Annotated[int, msgspec.Meta(ge=4 * 1024 * 1024)] = 64 * 1024 * 1024
    """Memory for what was fetched."""
    read_ahead_bytes: Positive = 16 * 1024 * 1024
    """How far ahead of a consumer that reads on."""
    backfill: bool = False
    """Whether the first start uploads what the log has already, too."""


class CompactionConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the embedded log compacts topics of cleanup.policy COMPACTION."""

    dirty_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    """A queue is compacted when so much of it came after the last time."""
    min_lag_ms: Annotated[int, msgspec.Meta(ge=0)] = 60_000
    """Younger messages are left alone."""
    max_lag_ms: Annotated[int, msgspec.Meta(ge=0)] = 3_600_000
    """A queue is compacted when a message has waited for so long."""
    tombstone_hours: Annotated[float, msgspec.Meta(ge=0)] = 24.0
    """How long a message without a body stays after it was first compacted."""
    map_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 64 * 1024 * 1024
    """Memory for keys; more keys than that take several rounds."""
    bytes_per_s: Positive = 64 * 1024 * 1024
    """The most that compaction reads and writes."""


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


class TimerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages with a delivery time of their own."""

    max_delay_hours: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] = 87_600.0
    """A message that is to wait longer is refused; ten years. RocketMQ's own limit is
    timerMaxDelaySec, 72 hours by default."""


class PopConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages that consumers pop instead of pulling them."""

    in_flight: Positive = 10_000
    """Messages of one queue that one group may have in hand; then it gets no more of
    that queue: popInflightMessageThreshold's default."""
    stay_ms: Positive = 10_000
    """How long what is in hand is kept in memory alone; then it goes to the log, too:
    popCkStayBufferTime's default."""
    retry_topic_v2: bool = False
    """Store messages that come again in %RETRY%group+topic instead of
    %RETRY%group_topic; both are read: enableRetryTopicV2's default."""


class TransactionsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When producers are asked how their transactions ended."""

    timeout_ms: Positive = 6000
    """How long a producer has to say it unasked: transactionTimeOut's default."""
    check_interval_ms: Positive = 30_000
    """How long after one time it is asked again: transactionCheckInterval's."""
    check_max: Positive = 15
    """How often it is asked: transactionCheckMax's."""


class HttpConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Health, metrics and the web page."""

    host: str = "127.0.0.1"
    port: Port = DEFAULT_HTTP_PORT
    writable: bool = False
    """Let the page change things: send dead letters again."""
    connections: Positive = 256
    """One more is closed: what reaches this port leaves file descriptors and time to
    brokers' clients. A browser has six."""
    headers_ms: Positive = 10_000
    """A connection that has sent no whole request for so long is closed."""
    names: tuple[str, ...] = ()
    """Host names that browsers may call the page by, besides localhost, `host` and IP
    addresses: of any other, a foreign page could make its own."""
    tls: bool = False
    """Speak HTTPS alone, with the certificate of the table tls."""
    guard_metrics: bool = False
    """Where access control is on: show metrics to those alone who may look at the
    cluster, which the header Authorization proves."""


class OtlpConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent by OpenTelemetry's protocol, and where; needs the extra otlp."""

    endpoint: str
    """The receiver's gRPC port: http://HOST:PORT, or https://HOST:PORT for TLS."""
    every_ms: Positive = 60_000
    """The default of OpenTelemetry's own exporters."""
    metrics: bool = True
    """Whether metrics are sent."""
    traces: bool = False
    """Whether spans are, of messages with a sampled trace context."""


class AclConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do what; without it everybody may do everything."""

    hooks: tuple[str, ...]
    """Names of what is asked, in this order: `plain` (RocketMQ ACL 1.0), `users` (ACL
    2.0), and whatever other packages bring as entry points of `ropeway.acl`."""
    options: dict[str, dict[str, Any]] = {}
    """Tables of options, by the hooks' names."""
    dry_run: bool = False
    """Write what would be refused to the audit log, and refuse nothing."""
    key_file: Path | None = None
    """Keys that encrypt secrets in the route store, one a line, of which the first
    encrypts and each decrypts; the environment's ROPEWAY_ACL_KEY where not given."""


class AuditConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is written of changes, sign-ins and refusals, with access control or not."""

    file: Path | None = None
    """Where lines go, as JSON, besides the log."""
    per_minute: Positive = 600
    """Refusals and sign-ins, on average; what is beyond is counted."""
    changes_per_minute: Positive = 6000
    """Changes of each kind, likewise."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a node is told."""

    data: Path = Path("ropeway-data")
    routes: str | None = None
    """Where topics, groups and settings are: zookeeper://host:port,host:port/path, or
    the URL of a store that is a plugin (`ropeway.routes`, by its scheme); or
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
    http: HttpConfig | None = None
    """Where it is given, there is a port for browsers, probes and Prometheus."""
    otlp: OtlpConfig | None = None
    """Where it is given, metrics or spans are sent, too; with a site or without."""
    grpc: bool = False
    """Serve RocketMQ 5's gRPC clients, too, on every listener; needs the extra grpc."""
    grpc_server: Literal["ropeway", "grpcio"] = "ropeway"
    """What takes their calls: Ropeway itself, or gRPC's own server behind it, which
    costs several times as much, and whose calls take no turns."""
    limits: LimitsConfig = LimitsConfig()
    requests: RequestsConfig = RequestsConfig()
    pulls: PullsConfig = PullsConfig()
    unauthenticated: UnauthenticatedConfig = UnauthenticatedConfig()
    creations: CreationsConfig = CreationsConfig()
    balance: BalanceConfig = BalanceConfig()
    quotas: tuple[QuotaConfig, ...] = ()
    """The first that means a client is its quota; who is not meant has none."""
    log: LogConfig = LogConfig()
    tier: TierConfig | None = None
    """Where it is given, old messages of the embedded log are kept there."""
    compaction: CompactionConfig = CompactionConfig()
    pulsar: PulsarConfig | None = None
    """Where it is given, messages and offsets are kept on Pulsar, not in `data`."""
    zookeeper: ZooKeeperConfig = ZooKeeperConfig()
    topics: TopicsConfig = TopicsConfig()
    migration: MigrationConfig | None = None
    """Where it is given, clients are served by two clusters at once."""
    pop: PopConfig = PopConfig()
    transactions: TransactionsConfig = TransactionsConfig()
    delay_levels: str = DEFAULT_DELAY_LEVELS
    store_replies: bool = True
    """Keep replies to requests in the topic CLUSTER_REPLY_TOPIC, besides giving them to
    who waits for them."""
    timer: TimerConfig = TimerConfig()
    audit: AuditConfig = AuditConfig()
    acl: AclConfig | None = None
    """Where it is given, every request is checked before it is worked on."""
    cluster_secret_file: Path | None = None
    """What nodes prove with that they are of one cluster, the same on each of them; the
    environment's ROPEWAY_CLUSTER_SECRET, or one made and kept with the routes, where
    not given."""
    shutdown_ms: Positive = 10_000
    """Time for requests in flight at shutdown."""

    @property
    def auto_create(self) -> bool:
        """Whether sending makes a topic: in a migration the source's brokers do."""
        return self.topics.auto_create and self.migration is None

    @property
    def log_name(self) -> str:
        """What keeps messages: `pulsar`, `embedded`, or the name of a plugin."""
        if self.pulsar is not None:
            return "pulsar"
        return (self.log.url or "embedded").partition(":")[0]
