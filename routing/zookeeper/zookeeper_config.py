"""Where a route store on ZooKeeper is, and how it is reached."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from ropeway.routing.api import RouteError

SESSION_S = 6.0
"""How long after a process has died its brokers are given up; three times the tick of
a ZooKeeper server as it comes, which allows no less than two."""
WAIT_S = 10.0
"""How long a change may take: longer than an ensemble needs for another leader."""
DEFAULT_PORT = 2181

_URL = re.compile(r"zookeeper://([^/@?#]+)((?:/[^/?#]+)+)/?")
_HOST = re.compile(r"([^:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")


class Tls(Struct, frozen=True, kw_only=True):
    """Files in PEM for connections that speak TLS."""

    ca: Path | None = None
    """Who signed the servers' certificates; the system's own where it is not given."""
    certificate: Path | None = None
    """Ours, where the servers ask for one."""
    key: Path | None = None
    check_host: bool = True
    """A server's certificate must name the host that was connected to."""


class ZooKeeperSettings(Struct, frozen=True, kw_only=True):
    """How a route store on ZooKeeper is reached."""

    session_s: float = SESSION_S
    """What to ask for; the servers have limits, and theirs count."""
    wait_s: float = WAIT_S
    """How long a change, or the start, waits for an answer."""
    user: str = ""
    """For ZooKeeper's digest scheme: what is stored with a user is for it alone."""
    password: str = ""
    tls: Tls | None = None


class ZooKeeperConfig(Struct, frozen=True):
    """Servers, and the path there under which everything is kept."""

    hosts: str
    """host:port of each server, with commas in between."""
    root: str


def parse_url(url: str) -> ZooKeeperConfig:
    """The place that a URL names: zookeeper://host:port,host:port/path.

    Raises:
        RouteError: It names none.
    """
    match = _URL.fullmatch(url)
    hosts = [_HOST.fullmatch(one) for one in match[1].split(",")] if match else []
    if match is None or not all(hosts):
        raise RouteError(
            f"route store {_without_password(url)!r}; allowed: "
            "zookeeper://host:port,host:port/path, of which port may be left out"
        )
    servers = [f"{one[1]}:{one[2] or DEFAULT_PORT}" for one in hosts if one]
    return ZooKeeperConfig(",".join(servers), match[2])


def _without_password(url: str) -> str:
    return re.sub(r"//[^/]*@", "//***@", url)
