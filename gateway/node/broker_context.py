"""What the parts of a broker stand on, so that each is given it as one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.topics import Topics
    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import Log
    from ropeway.storage.offsets import Offsets


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """A broker's name, its clock, and what it serves and stores."""

    name: str
    """As routes and receipts have it."""
    cluster: str
    """The one that it is of."""
    routes: RouteStore
    topics: Topics
    offsets: Offsets
    """Where groups are."""
    log: Log
    """Where topics are opened."""
    host: Callable[[], bytes]
    """Tells the broker's packed address, as clients reach it."""
    clock: Callable[[], int]
    """Milliseconds since 1970; of popping those that run on when clocks are set."""
