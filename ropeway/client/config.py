"""How clients are set up: times, limits, TLS and credentials, each with its reason."""

from __future__ import annotations

import ssl
from pathlib import Path

from msgspec import Struct

from ropeway.client.credentials import Credentials

MIB = 1024 * 1024


class ClientConfig(Struct, frozen=True, kw_only=True):
    """What every client has. Defaults are the Java client's unless said otherwise."""

    tls: ssl.SSLContext | None = None
    """Speak TLS with name servers and brokers; None speaks plain text."""
    tls_server_name: str | None = None
    """The name in the servers' certificates, where clients connect to another one."""
    credentials: Credentials | None = None
    """Sign requests (ACL 1.0)."""
    connect_timeout_s: float = 3.0
    request_timeout_s: float = 3.0
    heartbeat_interval_s: float = 30.0
    """Brokers forget a client after 120 s without a heartbeat."""
    route_interval_s: float = 30.0
    """How old a route may become."""
    reconnect_min_s: float = 0.05
    """Wait after a failed connect, doubled with each further one."""
    reconnect_max_s: float = 2.0
    outage_timeout_s: float = 10.0
    """How long `BulkReader` asks again while servers are away."""
    close_timeout_s: float = 10.0
    """The longest that `close` waits for handlers, and then for servers."""


class ProducerConfig(ClientConfig, frozen=True, kw_only=True):
    """What producers have besides."""

    send_timeout_s: float = 3.0
    """The longest that all attempts of a send may take together."""
    retries: int = 2
    """Further attempts after a failed one."""
    compress_above_bytes: int = 4096
    """Longer bodies are compressed; 0 never compresses."""
    max_message_bytes: int = 4 * MIB
    """Longer bodies are refused; brokers refuse them too."""
    default_queues: int = 4
    """How many queues a topic gets that sending creates."""


class ConsumerConfig(ClientConfig, frozen=True, kw_only=True):
    """What consumers have besides."""

    instance: str | None = None
    """The part of a push consumer's client id behind the address; a new one by default.
    Broadcasting consumers in the same folder of offsets need one each, that stays."""
    consume_from_ms: int = 0
    """The time for `ConsumeFrom.TIMESTAMP`, in ms since 1970."""
    concurrency: int = 20
    """How many handlers of a push consumer run at the same time."""
    max_reconsume_times: int | None = None
    """How often a message comes again until it is a dead letter. None: 16 times, or
    without end where queues are read in order."""
    pull_batch: int = 32
    """How many messages to ask for at once."""
    pull_wait_s: float = 15.0
    """How long a broker may hold a pull when there is nothing new."""
    pull_margin_s: float = 15.0
    """How much longer the client waits for that answer."""
    retry_delay_s: float = 1.0
    """Wait after a failed pull or send-back; Java waits 3 s, and 5 s to send back."""
    rebalance_interval_s: float = 20.0
    rebalance_retry_s: float = 0.5
    """Wait when a queue could not be taken yet."""
    commit_interval_s: float = 5.0
    """How often offsets are stored."""
    max_cached_messages: int = 1000
    """Of one queue; beyond it pulling pauses."""
    max_cached_bytes: int = 100 * MIB
    """Of one queue; beyond it pulling pauses."""
    lock_interval_s: float = 20.0
    """How often locks of orderly queues are renewed."""
    lock_lifetime_s: float = 30.0
    """How long a lock counts that could not be renewed; brokers keep it for 60 s."""
    suspend_s: float = 1.0
    """Wait before an orderly message is handled again."""
    handler_timeout_s: float = 900.0
    """After it an asynchronous handler is cancelled and the message retried."""
    offset_dir: Path = Path("~/.ropeway/offsets")
    """Where broadcasting consumers keep their offsets."""
