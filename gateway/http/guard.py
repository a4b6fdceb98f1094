"""Which pages may ask, and change what: the one place where that is decided.

Laws:

* What shows data answers only to names that are known to be ours, so that no foreign
  page can read it by a name of its own that leads here (DNS rebinding).
* What changes something needs the header `X-Ropeway`, which no form and no plain link
  can send, and comes from our own page where a browser says where it comes from.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from ropeway.gateway.http.login import PATH
from ropeway.gateway.http.params import RefusedError

if TYPE_CHECKING:
    from aiohttp import web

    from ropeway.gateway.config import HttpConfig

WRITE_HEADER = "X-Ropeway"


def check(request: web.Request, config: HttpConfig) -> None:
    """See that a request for data may be answered.

    Raises:
        RefusedError: It may not; says why.
    """
    host = _name(request.host)
    if not (_is_ours(host, config) or _is_address(host)):
        raise RefusedError(
            f"this server is not called {host!r:.80}; allowed: localhost, IP "
            "addresses, and the names of the setting http.names",
            403,
        )
    if request.method in ("GET", "HEAD"):
        return
    if not config.writable and request.path != PATH:
        raise RefusedError(
            "this page only shows; the setting http.writable = true allows changes", 403
        )
    if WRITE_HEADER not in request.headers:
        raise RefusedError(f"changes need the header {WRITE_HEADER}", 403)
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.host:
        raise RefusedError("changes are made from this server's own page alone", 403)


def _name(host: str) -> str:
    """A host without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _is_ours(name: str, config: HttpConfig) -> bool:
    return name in ("localhost", config.host) or name in config.names


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
