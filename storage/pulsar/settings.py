"""What can be set about the log on Pulsar, each with its unit and its reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN_VARIABLE = "ROPEWAY_PULSAR_TOKEN"  # noqa: S105 - a variable's name

KIB = 1024
MIB = 1024 * KIB


class PulsarLogSettings(Struct, frozen=True, kw_only=True):
    """Settings of one log on Pulsar."""

    service_url: str = "pulsar://127.0.0.1:6650"
    """Brokers or proxies, `pulsar+ssl://` for TLS; several: `pulsar://a:6650,b:6650`."""
    admin_url: str = "http://127.0.0.1:8080"
    """The same cluster's admin REST; several: `http://a:8080,b:8080`."""
    token_file: str | None = None
    """A file with the token to sign in with, read anew at each connection; without it
    the environment's ROPEWAY_PULSAR_TOKEN is used, if there is one."""
    tls_ca_file: str | None = None
    """Certificates of authorities to trust; None for the system's."""
    tenant: str = "public"
    """Of topics whose names have none."""
    namespace: str = "default"
    """Of topics whose names have none."""
    namespaces: tuple[str, ...] = ()
    """Further namespaces to serve, each `tenant/namespace`."""
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
        if not 4 * KIB <= self.pack_bytes <= 4 * MIB:
            raise ValueError(
                f"pack_bytes is {self.pack_bytes}; allowed: {4 * KIB} to {4 * MIB}"
            )
        for name, least in (
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
