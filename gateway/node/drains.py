"""Taking a broker out of its cluster for good: what it has yet, and forgetting it.

Laws:

* A broker that is drained gets no queue and no half message. Nothing else changes by
  that alone, so it can be undone at any time.
* Its queues move as others do. The only one that it has of a topic moves when no
  transaction is open here; whatever else waits is delivered where the topic is then.
* It is removed once none of its nodes runs, and nothing is left on it; or where an
  administrator says that it never comes back. Should one of that name come all the
  same, it forgets whatever it kept of topics that it has no queue of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.node import names
from ropeway.gateway.node.deletions import applied, is_pending, without
from ropeway.gateway.node.moves import MoveError, plan
from ropeway.gateway.node.placement import is_drained
from ropeway.gateway.node.queue_transfers import REMOVED
from ropeway.gateway.wire.commands.drains import BrokerRemoved, DrainState, NextMove

if TYPE_CHECKING:
    from ropeway.gateway.node.batches import Batches
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.schedule import Schedule
    from ropeway.gateway.node.timer.timer import Timer
    from ropeway.gateway.node.transactions import Transactions
    from ropeway.routing.api import RouteStore, Topic

DRAINING = "draining"
"""What the setting of a broker says that is being drained."""
_MOST_MOVES = 64
"""Who makes them asks again."""


class Waiting(NamedTuple):
    """Where messages of a broker wait."""

    schedule: Schedule
    """For a delay level."""
    timer: Timer
    """For a time of their own."""
    transactions: Transactions
    """For the end of a transaction."""
    batches: Batches
    """For the rest of their batch."""


class Drains:
    """A broker that leaves its cluster, as its leader sees it.

    Args:
        broker: This node's.
        waiting: What there is of it beside queues.
        is_shared: Whether other brokers can open what it has.
    """

    def __init__(
        self, broker: BrokerContext, waiting: Waiting, *, is_shared: bool
    ) -> None:
        self._broker = broker.name
        self._cluster = broker.cluster
        self._routes = broker.routes
        self._waiting = waiting
        self._is_shared = is_shared

    @property
    def is_drained(self) -> bool:
        """Whether this broker gets no queues and no half messages."""
        return is_drained(self._routes, self._broker)

    async def begin(self) -> None:
        """Have this broker get nothing more.

        Raises:
            MoveError: It could not be emptied; nothing has changed.
            RouteError: Likewise; or nobody knows.
        """
        if not self._is_shared:
            raise MoveError(
                f"broker {self._broker} keeps its messages in an embedded log, which "
                "no other broker can open; brokers on Pulsar can be drained"
            )
        await self._routes.refresh()
        if not self._takers():
            raise MoveError(
                f"no other broker runs in cluster {self._cluster} that could have the "
                f"queues of broker {self._broker}"
            )
        stuck = self._plan()[1]
        if stuck:
            raise MoveError(
                f"{len(stuck)} topics cannot leave broker {self._broker}: "
                + "; ".join(stuck[name] for name in sorted(stuck)[:3])
            )
        await self._routes.put_setting(names.DRAINS, self._broker, DRAINING)

    async def undo(self) -> None:
        """Have this broker get queues again; those that have moved stay away.

        Raises:
            RouteError: It is not changed; or nobody knows.
        """
        await self._routes.put_setting(names.DRAINS, self._broker, None)

    async def look(self) -> DrainState:
        """What this broker has yet.

        Also a queue that a rebalance gave it a moment ago, which another machine said.

        Raises:
            RouteError: Routes cannot be read now.
            LogError: What waits cannot be read now.
            IndexLostError: Likewise.
        """
        await self._routes.refresh()
        moves, stuck = self._plan()
        schedule, timer, transactions, batches = self._waiting
        waiting = {
            "transactions": transactions.is_busy and max(len(transactions), 1),
            "delayed": await schedule.count_waiting(),
            "timed": await timer.count_waiting(),
            "batches": batches.is_busy,
        }
        return DrainState(
            draining=self.is_drained,
            queues=dict(sorted(self._queues().items())),
            moves=moves[:_MOST_MOVES],
            stuck=stuck,
            waiting={kind: int(count) for kind, count in waiting.items() if count},
        )

    def _queues(self) -> dict[str, int]:
        return queues_of(self._routes, self._cluster, self._broker)

    def _takers(self) -> list[str]:
        return [
            name
            for name, nodes in self._routes.brokers.items()
            if name != self._broker
            and nodes[0].cluster == self._cluster
            and not is_drained(self._routes, name)
        ]

    def _plan(self) -> tuple[list[NextMove], dict[str, str]]:
        """What can move next, and what cannot, with why."""
        moves: list[NextMove] = []
        stuck: dict[str, str] = {}
        # Retries are made for as long as there is something else.
        found = sorted(self._queues(), key=lambda name: (names.is_derived(name), name))
        for name in found:
            if moves and names.is_derived(name):
                break
            try:
                moves.append(self._next(self._routes.topics[name]))
            except MoveError as error:
                stuck[name] = str(error)
        return moves, stuck

    def _next(self, topic: Topic) -> NextMove:
        takers = self._takers()
        if not takers:
            raise MoveError(f"no broker can take topic {topic.name}")
        why = None
        for taker in sorted(takers, key=lambda one: self._load(topic, one)):
            try:
                found = plan(topic, topic.name, self._broker, taker, drained=True)
            except MoveError as error:
                why = why or error
            else:
                return NextMove(topic.name, found.partition, taker)
        assert why is not None, "there are takers"
        raise why

    def _load(self, topic: Topic, taker: str) -> tuple[bool, int, str]:
        """How little a broker suits as the next one of a topic."""
        apart = False
        if topic.name.startswith(names.RETRY_PREFIX):
            # Popped messages that come again are looked for beside their topic.
            apart = not any(
                taker in one.route and topic.name.endswith(("_" + name, "+" + name))
                for name, one in self._routes.topics.items()
            )
        return apart, len(topic.route.get(taker, ())), taker


def queues_of(routes: RouteStore, cluster: str, broker: str) -> dict[str, int]:
    """How many queues a broker has of each topic that is not its own alone."""
    return {
        name: len(topic.route[broker])
        for name, topic in routes.topics.items()
        if broker in topic.route and not names.stays_with_broker(name, cluster, broker)
    }


async def remove(
    routes: RouteStore, cluster: str, broker: str, *, gone: bool
) -> BrokerRemoved:
    """Forget a broker that does not run: its own topics, and what it has to do.

    Args:
        routes: Have it.
        cluster: Its cluster.
        broker: Which one.
        gone: Also one that was not drained; its other queues stay where they are.

    Raises:
        MoveError: It runs, or was not drained, or has queues.
        RouteError: Not all is done; do it again.
    """
    await routes.refresh()
    if broker in routes.brokers:
        raise MoveError(
            f"broker {broker:.200} runs; stop its nodes first, and wait until they "
            "are forgotten"
        )
    left = queues_of(routes, cluster, broker)
    found = [*routes.topics.values(), *routes.deleted.values()]
    if not (
        is_drained(routes, broker)
        or any(broker in one.route or is_pending(one, broker) for one in found)
    ):
        raise MoveError(f"there is no broker {broker:.200}, and nothing is kept for it")
    if not gone and not is_drained(routes, broker):
        raise MoveError(
            f"broker {broker} was not drained; start a node of it, and drain it "
            f"(ropeway broker drain {broker}); or where it never comes back, say so "
            "(--gone)"
        )
    if left and not gone:
        raise MoveError(
            f"broker {broker} has queues of {len(left)} topics, like {min(left)}; "
            f"start a node of it, and drain it (ropeway broker drain {broker})"
        )
    # First: from here on, whoever comes with that name forgets what it was not told.
    await routes.put_setting(names.DRAINS, broker, REMOVED)
    await routes.put_setting(names.WRITE_PERMISSION, broker, None)
    deletions = own_topics = 0
    for topic in found:
        pending = is_pending(topic, broker)
        own = broker in topic.route and not left

        def change(old: Topic | None, *, own: bool = own) -> Topic | None:
            return applied(without(old, [broker]) if own else old, broker)

        if pending or own:
            await routes.change_topic(topic.name, change)
            deletions += pending
            own_topics += own
    return BrokerRemoved(deletions=deletions, own_topics=own_topics, left=left)
