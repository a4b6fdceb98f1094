"""The file with the user's contexts: name servers, credentials and TLS under a name.

It holds secrets, so that its mode is 0600; one that others can read is narrowed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Literal

import click
import msgspec
from msgspec import Struct

from ropeway.common.reasons import reason_of
from ropeway.common.versions import newer
from ropeway.gateway.cli.failures import CannotError, MisusedError

VERSION = 1
_MODE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Context(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is kept under one name; None is not set. Paths are absolute."""

    name_server: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    secret_key_file: str | None = None
    token: str | None = None
    token_file: str | None = None
    tls: bool | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_server_name: str | None = None
    site: str | None = None
    output: Literal["table", "json"] | None = None


class _Versioned(Struct):
    """What every version of the file has."""

    version: int = VERSION


class Contexts(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """All contexts, and which one is used where none is named."""

    current: str | None = None
    contexts: dict[str, Context] = {}
    version: int = msgspec.field(default_factory=lambda: VERSION)
    """Of the format; it is always written, and a file without it is of 1."""

    def get(self, name: str) -> Context:
        """The context of a name.

        Raises:
            MisusedError: There is none.
        """
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise MisusedError(f"context {name!r} does not exist; there are: {known}")
        return self.contexts[name]


def path() -> Path:
    """Where the file is: in the user's configuration folder, as XDG has it."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    # Relative ones are to be ignored (XDG Base Directory Specification, 0.8).
    base = Path(folder) if folder.startswith("/") else Path("~/.config").expanduser()
    return base / "ropeway" / "contexts.json"


def load() -> Contexts:
    """Read the file; no contexts where there is none.

    Raises:
        CannotError: It cannot be read, or not be taken from others.
        MisusedError: It is not what it should be.
    """
    file = path()
    try:
        with file.open("rb") as opened:
            _narrow(file, opened.fileno())
            text = opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return Contexts()
    except OSError as error:
        raise CannotError(f"{file} cannot be read: {reason_of(error)}") from error
    try:
        found = msgspec.json.decode(text, type=_Versioned).version
        if found > VERSION:
            raise MisusedError(newer(file, found, VERSION))
        return msgspec.json.decode(text, type=Contexts)
    except msgspec.DecodeError as error:
        raise MisusedError(f"{file} cannot be used: {error}") from error


def _narrow(file: Path, descriptor: int) -> None:
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if not mode & _OTHERS:
        return
    try:
        os.fchmod(descriptor, _MODE)
    except OSError as error:
        raise CannotError(
            f"others can read {file} (mode {mode:04o}), and that cannot be changed: "
            f"{reason_of(error)}; allowed: mode 0600"
        ) from error
    click.echo(
        f"others could read {file} (mode {mode:04o}); its mode is 0600 now. Change the "
        "secrets in it, if others use this machine",
        err=True,
    )


def save(contexts: Contexts) -> None:
    """Write the file anew, as a whole or not at all.

    Raises:
        CannotError: It cannot be written.
    """
    # A link stays one.
    file = path().resolve()
    new = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        with os.fdopen(descriptor, "wb") as opened:
            text = msgspec.json.format(msgspec.json.encode(contexts))
            opened.write(text + b"\n")
            opened.flush()
            os.fsync(descriptor)
        new.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise CannotError(f"{file} cannot be written: {reason_of(error)}") from error
