"""How many of the process's file descriptors connections may take.

Segments, indexes and databases are opened while the node runs: where connections had
all descriptors, sends would be refused and lists of topics could not be changed.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ropeway.gateway.config import Config

_MOST = 1 << 20
"""Linux's own upper limit (fs.nr_open); some containers say that theirs is infinite."""
_FOR_FILES = 128
"""A node with all of its parts has some 55 open; reads of old segments open more."""


class Room(NamedTuple):
    """Connections that may be open at a time."""

    clients: int
    """To all listeners of brokers, of both protocols."""
    strangers: int
    """Of these, such as nobody is known on."""
    page: int


def raise_limit() -> None:
    """Allow this process as many open files as it may allow itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def room(config: Config) -> Room:
    """Part the descriptors: a quarter for files, of the others a quarter for the page.

    Strangers have half of what clients may have, so that they keep out nobody.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        soft = _MOST
    left = max(soft - max(soft // 4, _FOR_FILES), 8)
    page = min(config.http.connections, left // 4) if config.http is not None else 0
    clients = min(config.limits.connections, left - page)
    strangers = min(config.unauthenticated.connections, max(clients // 2, 1))
    return Room(clients, strangers, page)
