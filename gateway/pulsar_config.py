"""The settings of the log on Pulsar and of what it allows, of the one configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from ropeway.gateway.request_limits import Positive


class OAuth2Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who gives the token to sign in to Pulsar with: client credentials."""

    issuer_url: str
    """The issuer, as in Pulsar's own clients; its metadata are read from there."""
    credentials_file: Path
    """JSON with client_id and client_secret, read anew for each token."""
    audience: str | None = None
    """What the token is for, where the issuer asks for it."""
    scope: str | None = None
    """What it is to allow, likewise; several with spaces between."""
    ca_certificate: Path | None = None
    """Who signed the issuer's certificate; the system's own where it is not given."""


class PulsarConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages are kept when Pulsar keeps them."""

    service_url: str = "pulsar://127.0.0.1:6650"
    """Brokers or proxies; pulsar+ssl:// for TLS; several with commas in between."""
    admin_url: str = "http://127.0.0.1:8080"
    """The same cluster's admin REST."""
    listener_name: str | None = None
    """Which of the addresses that brokers advertise to use (`advertisedListeners`)."""
    keep_alive_ms: int = 4000
    """Between two PINGs to a broker; a silent one is given up after two to three."""
    ca_certificate: Path | None = None
    """Who signed Pulsar's certificates; the system's own where it is not given."""
    certificate: Path | None = None
    """Ours, which servers are shown; read anew, with its key, once it was replaced."""
    key: Path | None = None
    token_file: Path | None = None
    """The token to sign in with, read anew for each connection; the environment's
    ROPEWAY_PULSAR_TOKEN, where neither it nor `user` nor `oauth2` is given."""
    user: str | None = None
    """Who signs in with a password."""
    password_file: Path | None = None
    """The user's, read anew for each connection."""
    oauth2: OAuth2Config | None = None
    tenant: str = "rocketmq"
    """Of topics whose names have none."""
    namespace: str | None = None
    """Likewise; the cluster's name where it is not given."""
    namespaces: tuple[str, ...] = ()
    """Further ones that topics are served from, each `tenant/namespace`."""
    prepare: bool = True
    """Make the namespace, and set what it must have, where something is missing."""
    adopt: str | None = None
    """Take a namespace that a start refuses: of the cluster of this id, `empty`, or, in
    another Pulsar cluster, `replica`."""


class BalanceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether queues move between brokers on Pulsar by what is sent to them, unasked.

    One node of a cluster does it by its own settings: the master of the first broker by
    name. Defaults but the first are Pulsar's own for its bundles.
    """

    by_load: Literal["off", "dry-run", "on"] = "off"
    """A dry run only writes to the log which queue would move. Off, since a move lets
    clients wait and fetch routes, and who runs the cluster knows best when loads stay
    as they are; Pulsar, whose clients follow at once, has it on."""
    every_ms: Positive = 60_000
    """How often loads are looked at: loadBalancerSheddingIntervalMinutes."""
    measure_ms: Positive = 10_000
    """How long they are measured then, where they look uneven."""
    hits: Positive = 3
    """So often in a row one broker has to be too loaded before it gives a queue:
    loadBalancerSheddingConditionHitCountThreshold."""
    grace_ms: Positive = 1_800_000
    """A queue that has moved stays so long: loadBalancerSheddingGracePeriodMinutes."""
