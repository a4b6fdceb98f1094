"""What can be set about the log on Pulsar, each with its unit and its reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.pulsar.oauth2 import OAuth2Settings
from ropeway.storage.pulsar.service_url import ServiceUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN_VARIABLE = "ROPEWAY_PULSAR_TOKEN"  # noqa: S105 - a variable's name

KIB = 1024
MIB = 1024 * KIB

KEEP_ALIVE_MS = 4000
LEAST_KEEP_ALIVE_MS = 500
"""With less, a machine that is busy for a second would lose its connections."""


class PulsarLogSettings(Struct, frozen=True, kw_only=True):
    """Settings of one log on Pulsar."""

    service_url: str = "pulsar://127.0.0.1:6650"
    """Brokers or proxies, `pulsar+ssl://` for TLS; several: `pulsar://a:6650,b:6650`."""
    admin_url: str = "http://127.0.0.1:8080"
    """The same cluster's admin REST; several: `http://a:8080,b:8080`."""
    listener_name: str | None = None
    """Which of the addresses that brokers advertise is meant; None for their own choice
    (`advertisedListeners` and `internalListenerName` of broker.conf)."""
    token_file: str | None = None
    """A file with the token to sign in with, read anew at each connection; without it,
    and without another way, the environment's ROPEWAY_PULSAR_TOKEN is used, if there
    is one."""
    user: str | None = None
    """Who signs in with a password."""
    password_file: str | None = None
    """The user's; read anew at each connection."""
    oauth2: OAuth2Settings | None = None
    """Where a token comes from that ends and is renewed."""
    certificate: str | None = None
    """What servers are shown, PEM; who we are, where nothing else says it."""
    key: str | None = None
    """The certificate's; both are read anew when they were replaced."""
    tls_ca_file: str | None = None
    """Certificates of authorities to trust; None for the system's."""
    tenant: str = "public"
    """Of topics whose names have none."""
    namespace: str = "default"
    """Of topics whose names have none."""
    namespaces: tuple[str, ...] = ()
    """Further namespaces to serve, each `tenant/namespace`."""
    keep_alive_ms: int = KEEP_ALIVE_MS
    """Between two PINGs to each broker. A connection on which no byte comes is given up
    after two to three times as long: 8 to 12 s, sooner than after Pulsar's own 30 to
    60 s (keepAliveIntervalSeconds), and later than a broker's garbage collector or a
    busy machine pauses. One that is given up for nothing costs look-ups and openings
    alone: what was on its way is sent again, and stored once."""
    producer_name: str = "ropeway"
    """Of every producer: by it Pulsar knows repeats, so it must never change."""
    pack_bytes: int = 1 * MIB
    """Records that wait together are sent together, up to so many bytes."""
    packs_in_flight: int = 2
    """A partition's packs that Pulsar has not acknowledged; what comes then waits."""
    waiting_bytes: int = 64 * MIB
    """Appends that are not done; beyond that an append is refused as busy."""
    wait_ms: int = 1000
    """While a partition's oldest pack has waited longer, its appends are refused."""
    outcome_s: float = 10.0
    """For so long a pack may be unacknowledged before its outcome is unknown."""
    open_s: float = 30.0
    """How long opening a partition may take, with an old owner to be fenced."""
    tail_bytes: int = 64 * MIB
    """Memory for the newest packs, shared by all partitions."""
    read_ahead_bytes: int = 2 * MIB
    """What a reader asks Pulsar for before it is wanted."""
    readers: int = 64
    """Readers that are kept open, of all partitions."""
    readers_per_partition: int = 4
    """And of one; one reader serves a consumer that goes on where it was."""
    reader_idle_s: float = 30.0
    """A reader that nobody has used for so long is closed."""
    positions: int = 1024
    """Known places of packs a partition keeps, 32 bytes each."""
    trim_check_s: float = 60.0
    """How often each partition's oldest record is looked for, for retention."""

    @property
    def token(self) -> Callable[[], str] | None:
        """What reads the token to sign in with; None where there is none."""
        if self.token_file is None:
            token = os.environ.get(TOKEN_VARIABLE, "").strip()
            return (lambda: token) if token else None
        path = Path(self.token_file)
        return lambda: path.read_text(encoding="utf-8").strip()

    def __post_init__(self) -> None:
        """Refuse what cannot work, in words."""
        for complaint in _ways_in(self):
            raise ValueError(complaint)
        if not 4 * KIB <= self.pack_bytes <= 4 * MIB:
            raise ValueError(
                f"pack_bytes is {self.pack_bytes}; allowed: {4 * KIB} to {4 * MIB}"
            )
        for name, least in (
            ("keep_alive_ms", LEAST_KEEP_ALIVE_MS),
            ("packs_in_flight", 1),
            ("waiting_bytes", 1),
            ("wait_ms", 1),
            ("readers", 1),
            ("readers_per_partition", 1),
            ("positions", 4),
        ):
            if getattr(self, name) < least:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; allowed: {least} or more"
                )
        for space in self.namespaces:
            if space.count("/") != 1 or not all(space.split("/")):
                raise ValueError(f"namespace {space!r}; allowed: tenant/namespace")


def _ways_in(given: PulsarLogSettings) -> Iterator[str]:
    """What does not go together in how the cluster is reached; no secret is named."""
    tls = {
        "service_url": ServiceUrl.parse(given.service_url).tls,
        "admin_url": _is_https(given.admin_url),
    }
    if given.listener_name is not None and not given.listener_name.strip():
        yield f"listener_name is {given.listener_name!r}; allowed: a listener's name"
    for one, other in (("user", "password_file"), ("certificate", "key")):
        if (getattr(given, one) is None) != (getattr(given, other) is None):
            has, lacks = (one, other) if getattr(given, one) else (other, one)
            yield f"{has} is given without {lacks}; allowed: both, or neither"
    if given.user is not None and (not given.user or ":" in given.user):
        yield f"user is {given.user!r}; allowed: a name without a colon"
    ways = [way for way in WAYS if getattr(given, way) is not None]
    if len(ways) > 1:
        yield f"{' and '.join(ways)} are given; allowed: one of {', '.join(WAYS)}"
    for name, is_tls in tls.items():
        if given.certificate is not None and not is_tls:
            secure = "pulsar+ssl://" if name == "service_url" else "https://"
            yield (
                f"certificate is given, and {name} is {getattr(given, name)!r}; "
                f"allowed with it: {secure}"
            )


WAYS = ("token_file", "user", "oauth2")
"""Who we are is said in one way; a certificate may be shown besides."""


def _is_https(url: str) -> bool:
    """Whether an admin URL is with TLS.

    Raises:
        ValueError: It is none.
    """
    scheme, _, hosts = url.partition("://")
    if scheme not in {"http", "https"} or not all(hosts.rstrip("/").split(",")):
        raise ValueError(
            f"admin_url is {url!r}; allowed: http://host:port[,host:port...], or "
            "https:// for TLS"
        )
    return scheme == "https"
