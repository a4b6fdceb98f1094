"""What the hook can be told: Pulsar's own settings, in snake case, and some of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ropeway.acl.api import HookError

if TYPE_CHECKING:
    from collections.abc import Mapping

ADMIN_URL = "http://127.0.0.1:8080"

Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `acl.options.pulsar`, or that of another name for this hook."""

    token_secret_key: str | None = None
    """Key of HS256: `file:///path`, a path, `data:;base64,...` or `env:NAME`."""
    token_public_key: str | None = None
    """Key of RS256 or ES256, likewise; DER, as Pulsar has it, or PEM."""
    token_public_alg: str = "RS256"  # noqa: S105 - no secret
    """The one algorithm that is accepted with a public key."""
    token_auth_claim: str = "sub"  # noqa: S105 - no secret
    """Which claim is the role; the first, where it is a list."""
    token_audience_claim: str | None = None
    """Which claim must name `token_audience`."""
    token_audience: str | None = None
    token_allowed_clock_skew_seconds: Annotated[int, msgspec.Meta(ge=0)] = 0
    admin_url: str | None = None
    """Pulsar's admin REST, which is asked for permissions; several with commas. Where
    neither it nor the next two are given: as the log's settings have it, or where the
    log is not on Pulsar, `ADMIN_URL`."""
    token_file: Path | None = None
    """Our own token for it, read anew when it is asked; the environment's
    ROPEWAY_PULSAR_TOKEN, where it is not given."""
    ca_certificate: Path | None = None
    """Who signed its certificate; whom the system trusts, where it is not given."""
    tenant: str = "rocketmq"
    """Of topics and groups whose names have none."""
    namespace: str = ""
    """Likewise; `open_hook` gives it the cluster's name."""
    superusers: tuple[str, ...] = ()
    """Roles that may do everything, besides Pulsar's own superUserRoles, which only
    its superusers can see."""
    tokens: Positive = 10_000
    """Verified tokens that are remembered, the last used ones."""
    namespaces: Positive = 1_000
    """Namespaces whose permissions are remembered, the last used ones."""
    refresh_s: Seconds = 20.0
    """How often permissions and keys are looked at again; so a revocation is seen."""
    outage_s: Seconds = 300.0
    """How long permissions are believed while Pulsar does not answer."""


def read_options(name: str, given: Mapping[str, Any]) -> Options:
    """Check options.

    Raises:
        HookError: Says which is wrong; never what a key is.
    """
    try:
        options = msgspec.convert(given, Options, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise HookError(f"acl.options.{name}: {error}") from error
    if (options.token_secret_key is None) == (options.token_public_key is None):
        raise HookError(
            f"acl.options.{name}: give token_secret_key or token_public_key, not both"
        )
    if (options.token_audience_claim is None) != (options.token_audience is None):
        raise HookError(
            f"acl.options.{name}: token_audience_claim and token_audience go together"
        )
    return options


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str) and value:
        return Path(value).expanduser()
    raise ValueError("not a path")
