"""Messages that waited here, of topics whose queues other brokers have by now.

They were acknowledged to their senders, so they are stored where their topic is. A
broker that does not say that it has stored them is asked again: then they may be there
twice, as after a crash in the middle of a delivery.

What waits at a broker that is drained leaves before its time: it waits on in the timer
of another broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.gateway.node.forwarder import ForwardingError
from ropeway.gateway.node.placement import is_drained
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.storage.api import LogError, LogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.forwarder import Forwarder
    from ropeway.gateway.wire.commands.moves import DueMessages
    from ropeway.routing.api import RouteStore


class MovedMessages:
    """The topics of other brokers, as places for messages.

    Args:
        broker: This node's.
        routes: Say who has a topic.
        forwarder: Reaches other brokers.
    """

    def __init__(self, broker: str, routes: RouteStore, forwarder: Forwarder) -> None:
        self._broker = broker
        self._routes = routes
        self._forwarder = forwarder

    def watch_drains(self, changed: Callable[[], None]) -> None:
        """Call `changed` when a broker is to be drained, or is not any more."""

        def told(namespace: str) -> None:
            if namespace == names.DRAINS:
                changed()

        self._routes.watch_settings(told)

    def has(self, topic: str) -> bool:
        """Whether some broker has queues of a topic, be it this one."""
        return topic in self._routes.topics

    @property
    def keeps_what_waits(self) -> bool:
        """Whether messages are to wait at another broker: this one is drained."""
        drained = is_drained(self._routes, self._broker)
        return drained and bool(self._takers(names.TIMER_TOPIC))

    def _takers(self, name: str) -> list[str]:
        """The other brokers of the cluster that run and have queues of a topic."""
        routes = self._routes
        topic, ours = routes.topics.get(name), routes.brokers.get(self._broker)
        cluster = ours[0].cluster if ours else None
        return [
            broker
            for broker in sorted(topic.route if topic else ())
            if broker != self._broker
            and (nodes := routes.brokers.get(broker))
            and cluster in (None, nodes[0].cluster)
            # One that is drained itself would send on what is to wait there.
            and not (name == names.TIMER_TOPIC and is_drained(routes, broker))
        ]

    async def store(self, due: DueMessages) -> LogError | None:
        """Store messages where their topic is; None where they are there."""
        running = self._takers(due.topic)
        if not running:
            return LogUnavailableError(
                f"no broker that runs has queues of topic {due.topic}"
            )
        # Those of one queue go to one broker, so that they keep their order.
        taker = running[due.queue_id % len(running)]
        ours = self._routes.brokers.get(self._broker)
        if not ours:
            return LogUnavailableError(f"broker {self._broker} is not announced now")
        code, body = RequestCode.ROPEWAY_STORE_DUE, bodies.encode(due)
        try:
            address = self._routes.brokers[taker][0].addresses[0]
            await self._forwarder.ask(address, code, body, ours[0].addresses[0])
        except ForwardingError as error:
            return LogUnavailableError(f"broker {taker}: {error}")
        return None
