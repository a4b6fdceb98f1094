"""The option `context`: a cluster that `ropeway context add` has saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.common.reasons import reason_of
from ropeway.common.versions import newer
from ropeway.spark import credential_options

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION = 1
_OPTIONS = {
    "name_server": "nameServer",
    "access_key": "accessKey",
    "secret_key": "secretKey",
    "secret_key_file": "secretKeyFile",
    "token": "token",
    "token_file": "tokenFile",
    "tls": "tls",
    "tls_ca": "tlsCa",
    "tls_cert": "tlsCertificate",
    "tls_key": "tlsKey",
    "tls_server_name": "tlsServerName",
}
"""What the file calls each option that it can have."""


class _File(Struct):
    """What is asked of the file."""

    contexts: dict[str, dict[str, str | bool]] = {}
    version: int = _VERSION


def of_context(given: Mapping[str, str]) -> dict[str, str]:
    """Read what the context has that options name, as options; nothing without one.

    Who says by an option who the job is has nothing of that from the context.

    Raises:
        ValueError: There is none of that name, it leads nowhere, or the file cannot be
            used.
    """
    name = given.get("context")
    if name is None:
        return {}
    saved = _read().contexts
    if name not in saved:
        known = ", ".join(sorted(saved)) or "none"
        raise ValueError(
            f"option context is {name!r}, which {_path()} has not; there are: {known}"
        )
    if not (saved[name].get("name_server") or given.keys() & {"nameServer", "tier"}):
        raise ValueError(
            f"option context is {name!r}, which has no name server in {_path()}; "
            "allowed: one that has, or option nameServer beside it"
        )
    says_who = any(one in given for one in credential_options.NAMES)
    found = {
        _OPTIONS[key]: str(value).lower() if isinstance(value, bool) else value
        for key, value in saved[name].items()
        if key in _OPTIONS
    }
    return {
        option: value
        for option, value in found.items()
        if not (says_who and option in credential_options.NAMES)
    }


def _path() -> Path:
    """Where `ropeway` keeps them: in the user's configuration folder, as XDG has it."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if folder.startswith("/") else Path("~/.config").expanduser()
    return base / "ropeway" / "contexts.json"


def _read() -> _File:
    file = _path()
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_File)
    except FileNotFoundError:
        return _File()
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"{file} cannot be used: {reason_of(error)}") from error
    if found.version > _VERSION:
        raise ValueError(newer(file, found.version, _VERSION))
    return found
