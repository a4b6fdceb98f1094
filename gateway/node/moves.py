"""Giving a queue to another broker that shares the log: a hand-over, copying nothing.

Laws:

* One change of the topic's route moves a queue. Before it the queue is the giver's,
  and after it the taker's, whoever dies, and when.
* What the taker needs to know is kept there before that change, and counts after it.
* The giver serves the queue to nobody from before it says where groups are; appends
  that it took are stored by then, or of unknown outcome to whoever sent them.

A broker gives its last queue alone, so all others keep their ids, and the taker gets it
behind its own. The only one that it has stays, unless the broker is drained: then what
waits here for the topic is delivered elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ropeway.gateway.node import attributes, message_types, names
from ropeway.gateway.node.deletions import is_pending
from ropeway.gateway.node.placement import is_drained
from ropeway.gateway.wire.commands.moves import HandedOver, QueueMoved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.gateway.node.batches import Batches
    from ropeway.gateway.node.broker_context import BrokerContext
    from ropeway.gateway.node.locks import QueueLocks
    from ropeway.gateway.node.shared_partitions import SharedLog
    from ropeway.gateway.node.timer.delivery import Delivery
    from ropeway.gateway.node.transactions import Transactions
    from ropeway.gateway.wire.commands.moves import DueMessages
    from ropeway.routing.api import Topic

    HandOver = Callable[[HandedOver], Awaitable[None]]

_BATCHES_S = 30.0
_LOOK_EVERY_S = 0.05


class InHand(Protocol):
    """What is in the hands of consumers that pop."""

    async def settle(self, topic: str, queue_id: int) -> None:
        """Turn what is in hand for long into retries that come at their time."""

    def has_kept(self, topic: str, queue_id: int) -> bool:
        """Whether something of a queue is, or may be, in hand for long."""

    def leave(self, topic: str, queue_id: int) -> None:
        """A queue is not this broker's any more, or only since now."""


class Unfinished(NamedTuple):
    """What a broker has begun with messages of its queues."""

    pop: InHand
    """What is in consumers' hands."""
    batches: Batches
    """What is decided and not delivered."""
    transactions: Transactions
    """Those that are open here."""


class MoveError(Exception):
    """A queue cannot be moved so; the text says why, and what is allowed."""


class Plan(Struct, frozen=True):
    """A queue on its way from one broker to another."""

    topic: str
    partition: int
    giver: str
    from_id: int
    taker: str
    to_id: int
    generation: int


def plan(
    topic: Topic | None, name: str, giver: str, taker: str, *, drained: bool = False
) -> Plan:
    """The move of a broker's last queue of a topic.

    Args:
        topic: As the routes have it.
        name: Its name.
        giver: The broker.
        taker: The one that is to get the queue.
        drained: Whether the giver is to have none left, retries and dead letters
            among them.

    Raises:
        MoveError: It cannot be.
    """
    if topic is None or giver not in topic.route:
        raise MoveError(f"topic {name:.200} has no queues on broker {giver}")
    if giver == taker:
        raise MoveError(f"broker {giver} has that queue; allowed: another broker")
    if complaint := _complaint(topic, drained=drained):
        raise MoveError(complaint)
    generation = topic.generations.get(giver, 0)
    if is_pending(topic, giver) or is_pending(topic, taker):
        raise MoveError(f"topic {name} was just deleted there; try again in a moment")
    if taker in topic.route and topic.generations.get(taker, 0) != generation:
        raise MoveError(
            f"queues of topic {name} on brokers {giver} and {taker} were not made "
            "together: it was deleted on one of them since; allowed: such queues alone"
        )
    ours = topic.route[giver]
    if len(ours) < 2 and not drained:  # noqa: PLR2004 - one stays
        raise MoveError(
            f"topic {name} has {len(ours)} queues on broker {giver}; allowed: 2 or "
            "more, since one stays there for messages that wait for their time"
        )
    theirs = topic.route.get(taker, [])
    return Plan(name, ours[-1], giver, len(ours) - 1, taker, len(theirs), generation)


def _complaint(topic: Topic, *, drained: bool) -> str | None:
    name = topic.name
    if not drained and (names.is_system_topic(name) or names.is_derived(name)):
        return f"topic {name} is each broker's own; allowed: topics of clients"
    if topic.is_migrating:
        return (
            f"topic {name} is mirrored or cut over; allowed: topics whose migration "
            "is finished (ropeway migrate finish), or others"
        )
    if message_types.type_of_topic(name, topic.attributes) == message_types.LITE:
        return f"topic {name} has lite topics; allowed: other topics"
    if attributes.entry_format(topic.attributes) != "packed":
        return f"topic {name} is shared with native clients; allowed: other topics"
    most = max(map(len, topic.route.values()), default=0)
    counts = (topic.read_queue_nums, topic.write_queue_nums)
    if counts[0] != counts[1] or most > counts[0]:
        return (
            f"topic {name} has {counts[0]} queues for reading and {counts[1]} for "
            f"sending, and up to {most} on a broker; allowed: one number that none "
            "has more of"
        )
    return None


def moved(old: Topic | None, wanted: Plan, *, drained: bool = False) -> Topic:
    """A topic after a move; see `plan`.

    Raises:
        MoveError: It is not as it was when that was planned.
    """
    now = plan(old, wanted.topic, wanted.giver, wanted.taker, drained=drained)
    # Which id it gets may have changed: it is known by its partition until then.
    if old is None or replace(now, to_id=wanted.to_id) != wanted:
        raise MoveError(f"topic {wanted.topic} has changed meanwhile; try again")
    theirs = [*old.route.get(wanted.taker, []), wanted.partition]
    generations = dict(old.generations)
    if wanted.generation:
        generations[wanted.taker] = wanted.generation
    queues = max(old.read_queue_nums, len(theirs))
    route = {
        **old.route,
        wanted.giver: old.route[wanted.giver][:-1],
        wanted.taker: theirs,
    }
    if not route[wanted.giver]:
        del route[wanted.giver]
        generations.pop(wanted.giver, None)
    return replace(
        old,
        read_queue_nums=queues,
        write_queue_nums=queues,
        route=route,
        generations=generations,
        moved=sorted({*old.moved, wanted.partition}),
    )


class Moves:
    """Gives this node's queues to other brokers, and takes theirs.

    Args:
        broker: This node's.
        log: What brokers share; None where a log is one node's own.
        locks: Of queues that are consumed in order.
        unfinished: What has to be done with before a queue goes.
        delivery: Stores messages that waited elsewhere.
        leads: Whether this node leads its broker, for certain.
    """

    def __init__(
        self,
        broker: BrokerContext,
        log: SharedLog | None,
        locks: QueueLocks,
        unfinished: Unfinished,
        delivery: Delivery,
        leads: Callable[[], bool],
    ) -> None:
        self._broker = broker.name
        self._cluster = broker.cluster
        self._routes = broker.routes
        self._log = log
        self._topics = broker.topics
        self._offsets = broker.offsets
        self._locks = locks
        self._pop, self._batches, self._transactions = unfinished
        self._delivery = delivery
        self._leads = leads

    async def give(
        self,
        name: str,
        taker: str,
        hand_over: HandOver,
        partition: int | None = None,
    ) -> QueueMoved:
        """Give this broker's last queue of a topic to another broker.

        Args:
            name: The topic.
            taker: The other broker, which must run, in the same cluster.
            hand_over: Tells the taker's leader, and returns when it has kept that.
            partition: Which one that queue has, where that matters.

        Raises:
            MoveError: It cannot be moved now; it is here as before.
            LogError: Likewise.
            RouteError: Likewise; or nobody knows, and routes will say.
        """
        log = self._shared()
        await self._routes.catch_up()
        self._look_at(taker)
        began_s = time.monotonic()
        async with self._turn(name):
            drained = is_drained(self._routes, self._broker)
            found = self._routes.topics.get(name)
            wanted = plan(found, name, self._broker, taker, drained=drained)
            if partition not in (None, wanted.partition):
                raise MoveError(
                    f"the last queue of topic {name} on broker {self._broker} is "
                    f"partition {wanted.partition}, not {partition}; look again"
                )
            if self._topics.get(name) is None:
                raise MoveError(f"topic {name} is not served now; try again")
            if wanted.from_id == 0 and self._transactions.is_busy:
                # Producers leave a broker that has no queue for them.
                raise MoveError(
                    f"transactions of broker {self._broker} are open; try again when "
                    "they have ended"
                )
            await self._pop.settle(name, wanted.from_id)
            await self._until_free(wanted)
            # Nothing is waited for from there on until nobody is served.
            with self._topics.withdrawn(name, wanted.partition):
                handed = self._handed(wanted)
                await log.let_go(name, wanted.partition)
                await hand_over(handed)
                if not self._leads():
                    raise MoveError(f"broker {self._broker} has another master now")
                await self._routes.change_topic(
                    name, partial(moved, wanted=wanted, drained=drained)
                )
                wanted = self._as_moved(wanted)
                self._topics.moving.clear_queue(name, wanted.from_id)
        return QueueMoved(
            topic=name,
            partition=wanted.partition,
            giver=wanted.giver,
            from_id=wanted.from_id,
            taker=wanted.taker,
            to_id=wanted.to_id,
            took_ms=round((time.monotonic() - began_s) * 1000),
        )

    async def take(self, handed: HandedOver) -> None:
        """Keep what this broker needs to know of a queue that it is about to get.

        Raises:
            MoveError: It cannot get that queue now.
            LogError: It is not known to be kept.
        """
        self._shared()
        name, generation = handed.topic, handed.generation
        topic = await self._routes.find_topic(name)
        ours = topic.generations.get(self._broker, 0) if topic else generation
        if (
            topic is None
            or is_pending(topic, self._broker)
            or (self._broker in topic.route and ours != generation)
        ):
            raise MoveError(f"topic {name} is another one on broker {self._broker}")
        # So that it is at hand when the routes say that it is here.
        await self._topics.changes.create(topic, [handed.partition], generation)
        for group, (client_id, left_ms) in handed.locks.items():
            queue = (name, handed.to_id)
            self._locks.adopt(group, queue, client_id, left_ms)
        offsets = handed.offsets
        await self._topics.moving.keep(name, generation, handed.partition, offsets)

    async def store(self, due: DueMessages) -> None:
        """Store messages that waited at a broker which has no queue of their topic.

        Raises:
            MoveError: It is not here either.
            LogError: Not all are stored.
        """
        topic = self._topics.get(due.topic)
        if topic is None or not topic.partitions:
            raise MoveError(f"topic {due.topic:.200} is not on broker {self._broker}")
        wanted = [(data, due.topic, due.queue_id, text) for data, text in due.messages]
        outcomes = await self._delivery.deliver(wanted, from_timer=due.from_timer)
        if error := next(filter(None, outcomes), None):
            raise error

    def _as_moved(self, wanted: Plan) -> Plan:
        topic = self._routes.topics.get(wanted.topic)
        theirs = topic.route.get(wanted.taker, []) if topic else []
        if wanted.partition not in theirs:
            return wanted  # It has gone further already.
        return replace(wanted, to_id=theirs.index(wanted.partition))

    def _shared(self) -> SharedLog:
        if self._log is None:
            raise MoveError(
                f"broker {self._broker} keeps its messages in an embedded log, which "
                "no other broker can open; queues move between brokers on Pulsar"
            )
        return self._log

    def _look_at(self, taker: str) -> None:
        nodes = self._routes.brokers.get(taker)
        if (
            not nodes
            or nodes[0].cluster != self._cluster
            or is_drained(self._routes, taker)
        ):
            running = [
                name
                for name, found in self._routes.brokers.items()
                if found[0].cluster == self._cluster
                and name != self._broker
                and not is_drained(self._routes, name)
            ]
            allowed = ", ".join(sorted(running)) or "none"
            raise MoveError(
                f"there is no broker {taker:.200} that runs in cluster "
                f"{self._cluster} and is not being drained; allowed: {allowed}"
            )

    def _turn(self, name: str) -> asyncio.Lock:
        lock = self._topics.lock(name)
        if lock.locked():
            # Two brokers that wait for each other's would wait for long.
            raise MoveError(f"topic {name} is being changed now; try again")
        return lock

    async def _until_free(self, wanted: Plan) -> None:
        """Wait until no batch is being delivered: it counts messages in its queues."""
        give_up_s = time.monotonic() + _BATCHES_S
        while self._batches.is_busy:
            if time.monotonic() > give_up_s:
                raise MoveError("batches are committed all the time; try again later")
            await asyncio.sleep(_LOOK_EVERY_S)
        if self._pop.has_kept(wanted.topic, wanted.from_id):
            raise MoveError(
                f"messages of queue {wanted.from_id} of topic {wanted.topic} are in "
                "consumers' hands for long, and cannot be stored again now; try again"
            )

    def _handed(self, wanted: Plan) -> HandedOver:
        """What is known of a queue that is served to nobody any more."""
        name, queue_id = wanted.topic, wanted.from_id
        self._pop.leave(name, queue_id)
        return HandedOver(
            topic=name,
            partition=wanted.partition,
            giver=wanted.giver,
            to_id=wanted.to_id,
            generation=wanted.generation,
            offsets={
                group: offset
                for group in self._offsets.groups()
                if not names.is_inner(group)
                and (offset := self._offsets.get(group, name, queue_id)) is not None
            },
            locks=self._locks.of_queue(name, queue_id),
        )
