"""Which files of a configuration hold secrets, and whether others can read them.

Where access control is on, a node does not start while they can: whoever reads a key,
a password or the cluster's secret is above every rule.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import structlog

from ropeway.gateway.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.config import Config

log = structlog.get_logger(__name__)

ADVICE = (
    "chmod 600 for the user that runs the node, or 640 with a group of its own; "
    "in Kubernetes defaultMode: 0440 with fsGroup"
)
_ZOOKEEPER = "zookeeper://"
_NO_SECRETS = ("ca_certificate", "token_public_key")
"""Options of hooks that name files which anybody may read."""


class Exposed(NamedTuple):
    """A file with secrets that more than its owner can read."""

    setting: str
    """The key of the configuration that names it."""
    path: Path
    mode: int
    to_others: bool
    """Everybody on the machine can; otherwise only its group."""

    def __str__(self) -> str:
        who = "everybody on this machine" if self.to_others else "its group"
        return (
            f"{self.setting}: {self.path} has mode {self.mode:04o}, so {who} can read "
            "the secrets in it; allowed: 0600, or 0640 for a group"
        )


def secret_files(config: Config) -> Iterator[tuple[str, Path]]:
    """The settings that name files with secrets, with those files."""
    routes = config.routes or str(config.data / "routes.db")
    if not routes.startswith(_ZOOKEEPER):
        # Users, and the cluster's secret where no file has it.
        yield "routes", Path(routes)
    named: dict[str, Path | None] = {
        "cluster_secret_file": config.cluster_secret_file,
        "tls.key": config.tls.key if config.tls else None,
        "zookeeper.password_file": config.zookeeper.password_file,
        "zookeeper.key": config.zookeeper.key,
        "acl.key_file": config.acl.key_file if config.acl else None,
    }
    if config.pulsar is not None:
        issuer = config.pulsar.oauth2
        named |= {
            "pulsar.token_file": config.pulsar.token_file,
            "pulsar.password_file": config.pulsar.password_file,
            "pulsar.key": config.pulsar.key,
            "pulsar.oauth2.credentials_file": (
                issuer.credentials_file if issuer else None
            ),
        }
    for setting, path in named.items():
        if path is not None:
            yield setting, path
    for hook, options in (config.acl.options if config.acl else {}).items():
        for option, value in options.items():
            # Whatever hook it is: what names a file may be a secret.
            if isinstance(value, str) and option not in _NO_SECRETS:
                yield f"acl.options.{hook}.{option}", _path(value)


def _path(value: str) -> Path:
    parts = urlsplit(value)
    return Path(unquote(parts.path) if parts.scheme == "file" else value).expanduser()


def exposed(config: Config) -> Iterator[Exposed]:
    """Files with secrets that more than their owner can read.

    What is not there, or cannot be looked at, is for those to tell who read it.
    """
    for setting, path in secret_files(config):
        try:
            # Kubernetes mounts symbolic links: what they lead to is what counts.
            file = path.resolve()
            found = file.stat()
            above = [one.stat().st_mode for one in file.parents]
        except (OSError, ValueError, RuntimeError):
            continue
        mode = stat.S_IMODE(found.st_mode)
        if not stat.S_ISREG(found.st_mode):
            continue
        if mode & stat.S_IROTH and all(one & stat.S_IXOTH for one in above):
            yield Exposed(setting, path, mode, to_others=True)
        elif (
            mode & stat.S_IRGRP
            and not _is_given_by_group(found)
            and all(one & (stat.S_IXGRP | stat.S_IXOTH) for one in above)
        ):
            yield Exposed(setting, path, mode, to_others=False)


def _is_given_by_group(found: os.stat_result) -> bool:
    """Whether the node itself reads a file by its group alone, as Kubernetes has it."""
    user, groups = os.geteuid(), {os.getegid(), *os.getgroups()}
    return user not in (0, found.st_uid) and found.st_gid in groups


def refuses(config: Config) -> bool:
    """Whether a node of this configuration refuses to start with exposed secrets."""
    return config.acl is not None and not config.acl.dry_run


def check(config: Config) -> None:
    """See that nobody else reads the secrets; the log says who can.

    Raises:
        ConfigError: Everybody can, and access control is on.
    """
    for one in exposed(config):
        if one.to_others and refuses(config):
            raise ConfigError(f"{one}. {ADVICE}")
        log.warning("others can read secrets", file=str(one), advice=ADVICE)
