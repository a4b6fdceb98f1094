"""Names of nodes: each is one process's, and who loses its place is announced again.

Which of two processes is the rightful one: the one that is announced. Who comes later,
at its start or back from a session that has ended, waits until the other is gone, for
as long as a dead process may be known. Then the other lives, and who waited must end.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from ropeway.routing.api import NameTakenError, RouteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.routing.api import Broker
    from ropeway.routing.zookeeper.brokers import Brokers
    from ropeway.routing.zookeeper.session import Session

RETRY_S = 1.0
OUTLIVED = 2.0
"""A dead process is known for as long as its session may be silent, and for two ticks
of the servers; these allow no session to be shorter than two ticks.

From the last connection on: servers that have a new leader give every session its time
anew, also those of the dead, and all connections are new then."""

_log = structlog.get_logger()


class Names:
    """Keeps the nodes of this process announced.

    Args:
        session: Tells how long a process may be silent.
        brokers: What is announced.
        put: `Brokers.put`, until a server answers; raises RouteError.
    """

    def __init__(
        self,
        session: Session,
        brokers: Brokers,
        put: Callable[[Broker], Awaitable[Broker | None]],
    ) -> None:
        self.watchers: list[Callable[[str], None]] = []
        self.returning: dict[tuple[str, str], asyncio.Task[None]] = {}
        """What has nodes announced again."""
        self._session = session
        self._brokers = brokers
        self._put = put
        brokers.missed = self._missed

    async def announce(self, broker: Broker) -> None:
        """Announce a node once no other process has its name.

        Raises:
            NameTakenError: Another has.
            RouteError: The servers do not answer, or refuse.
        """
        try:
            await self._wait_and_put(broker)
        finally:
            if self._brokers.misses(broker):
                self._missed(broker)

    async def _wait_and_put(self, broker: Broker) -> None:
        until_s, connections = math.inf, 0
        with self._brokers.watching() as changed:
            while True:
                changed.clear()
                rival = await self._put(broker)
                if rival is None:
                    return
                now_s = time.monotonic()
                if self._session.connections != connections:
                    wait_s = OUTLIVED * self._session.timeout_s
                    if until_s == math.inf:
                        _tell_of(rival, wait_s)
                    until_s = now_s + wait_s
                    connections = self._session.connections
                elif now_s >= until_s:
                    raise NameTakenError(_refusal(rival))
                with suppress(TimeoutError):
                    async with asyncio.timeout(until_s - now_s):
                        await changed.wait()

    async def stop(self, name: str, node: str) -> None:
        """Have a node not announced again that is being announced now."""
        if task := self.returning.get((name, node)):
            task.cancel()
            await asyncio.wait([task])

    def _missed(self, broker: Broker) -> None:
        """Have a node announced again that has lost its place."""
        key = broker.name, broker.node
        if key not in self.returning:
            task = asyncio.get_running_loop().create_task(self._return(broker))
            self.returning[key] = task
            task.add_done_callback(lambda _: self.returning.pop(key))

    async def _return(self, broker: Broker) -> None:
        while self._brokers.misses(broker):
            try:
                await self._wait_and_put(broker)
            except NameTakenError as error:
                for lost in self.watchers:
                    lost(str(error))
                return
            except RouteError as error:
                _log.warning(
                    "this node is not announced", broker=broker.name, reason=str(error)
                )
                await asyncio.sleep(RETRY_S)


def _tell_of(rival: Broker, wait_s: float) -> None:
    _log.warning(
        "another process has the name of this node; waiting for its session to end",
        broker=rival.name,
        node=rival.node,
        addresses=rival.addresses,
        process=rival.pid,
        at_most_s=round(wait_s, 1),
    )


def _refusal(rival: Broker) -> str:
    return (
        f"node {rival.node} of broker {rival.name} runs already, as process "
        f"{rival.pid} at {', '.join(rival.addresses)}; "
        "each node needs a name of its own (--node)"
    )
