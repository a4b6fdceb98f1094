"""A node with access control that wants TLS, and those who ask it something."""

from __future__ import annotations

import base64
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ropeway.acl.vault import new_key
from ropeway.testing import running_gateway
from tests.acl.pulsar.issuing import SECRET, token
from tests.gateway.test_tls import issue
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.system.pulsar import Pulsar

ROOT, NOBODY = "root", "somebody"
PASSWORD = "hush-hush-hush"
WAYS = ("keys", "token", "certificate")

_SETTINGS = """\
[tls]
certificate = "{folder}/localhost.pem"
key = "{folder}/localhost.key"
client_ca = "{folder}/ca.pem"
client_certificate = "{certificate}"
required = true

[http]
host = "127.0.0.1"
port = {page}
tls = true
guard_metrics = true

[acl]
hooks = ["certificates", "pulsar", "users"]
key_file = "{folder}/key"
[acl.options.certificates]
superusers = ["root"]
[acl.options.pulsar]
token_secret_key = "data:;base64,{secret}"
admin_url = "http://127.0.0.1:1"
superusers = ["root"]
[acl.options.users]
superuser = "root"
superuser_password_file = "{folder}/password"
migrate_from = "{folder}/plain_acl.yml"

[audit]
file = "{folder}/audit.jsonl"

[limits]
send_wait_ms = 60_000

[log]
segment_bytes = 8_388_608
"""
_ON_PULSAR = """\

[pulsar]
service_url = "{service_url}"
admin_url = "{admin_url}"
token_file = "{folder}/token"
tenant = "public"
namespace = "{namespace}"
"""


class Secured(NamedTuple):
    """A running node of this kind."""

    address: str
    site: str
    folder: Path

    def environment(self, who: str | None, way: str = "keys") -> Mapping[str, str]:
        """What somebody's commands find in the environment.

        Args:
            who: `root`, who may do everything, `somebody`, or None without credentials.
            way: How they sign in.
        """
        found = {
            "ROPEWAY_NAME_SERVER": self.address,
            "ROPEWAY_SITE": self.site,
            "ROPEWAY_TLS_CA": str(self.folder / "ca.pem"),
        }
        if who is None:
            return found
        if way == "keys":
            return {
                **found,
                "ROPEWAY_ACCESS_KEY": who,
                "ROPEWAY_SECRET_KEY": PASSWORD,
            }
        if way == "token":
            ends = int(time.time()) + 3600
            return {**found, "ROPEWAY_TOKEN": token({"sub": who, "exp": ends})}
        return {
            **found,
            "ROPEWAY_TLS_CERT": str(self.folder / f"{who}.pem"),
            "ROPEWAY_TLS_KEY": str(self.folder / f"{who}.key"),
        }


@contextmanager
def secured(folder: Path, pulsar: Pulsar | None = None) -> Iterator[Secured]:
    """Run such a node; it has a user, a token and a certificate for each name.

    Args:
        folder: For its files, and its log.
        pulsar: Has its log instead; then everybody must show a certificate.
    """
    ca = issue(folder, "ca")
    issue(folder, "localhost", ca, address="127.0.0.1")
    for name in (ROOT, NOBODY):
        issue(folder, name, ca)
    (page,) = free_ports(1)
    accounts = f"accounts:\n- accessKey: {NOBODY}\n  secretKey: {PASSWORD}\n"
    files = {
        "key": new_key(),
        "password": PASSWORD,
        "plain_acl.yml": accounts + "  defaultTopicPerm: DENY\n",
        "settings.toml": _SETTINGS.format(
            folder=folder,
            page=page,
            secret=base64.b64encode(SECRET).decode(),
            certificate="required" if pulsar else "optional",
        )
        + (_on(pulsar, folder) if pulsar else ""),
        "token": token({"sub": ROOT}),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    for file in folder.iterdir():
        file.chmod(0o600)
    options = ["--config", str(folder / "settings.toml")]
    with running_gateway(folder / "data", options) as gateway:
        yield Secured(gateway.address, f"https://127.0.0.1:{page}", folder)


def _on(pulsar: Pulsar, folder: Path) -> str:
    """The settings of a node with a namespace of its own there."""
    pulsar.make_namespace(f"public/{folder.name}")
    return _ON_PULSAR.format(
        service_url=pulsar.service_url,
        admin_url=pulsar.admin_url,
        folder=folder,
        namespace=folder.name,
    )
