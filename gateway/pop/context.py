"""What the parts of popping stand on, so that each is given it as one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropeway.gateway.config import PopConfig
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.long_polling import LongPolling
    from ropeway.gateway.node.resets import Resets
    from ropeway.gateway.node.traffic import PulledOffsets
    from ropeway.gateway.pop.in_flight import InFlight
    from ropeway.gateway.pop.ledger import Ledger
    from ropeway.gateway.pop.order import OrderBook
    from ropeway.gateway.pop.switches import Switches


@dataclass(frozen=True, slots=True)
class PopContext:
    """A broker, the limits of popping, and what is in consumers' hands."""

    broker: BrokerContext
    """Whose messages are popped, by a clock that nobody sets."""
    config: PopConfig
    """Its limits."""
    switches: Switches
    """Whether anything is handed out."""
    resets: Resets
    """Groups that were moved."""
    pulled: PulledOffsets
    """Is told how far groups have come."""
    in_flight: InFlight
    """What is out and young."""
    ledger: Ledger
    """What is out for longer."""
    book: OrderBook
    """What is out in order."""
    polling: LongPolling[tuple[str, str]]
    """Pops that wait, by group and topic."""
