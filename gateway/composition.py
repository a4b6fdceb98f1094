"""Builds the parts of a node and joins them: the only place that knows them all."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import structlog

from ropeway.common.clock import now_ms
from ropeway.common.reasons import reason_of
from ropeway.common.tasks import Tasks
from ropeway.gateway import access_control, backends
from ropeway.gateway.config import ConfigError
from ropeway.gateway.extras import package
from ropeway.gateway.lite.service import Lite
from ropeway.gateway.node.arrivals import Arrivals
from ropeway.gateway.node.balance import Balance
from ropeway.gateway.node.batches import Batches
from ropeway.gateway.node.broker_context import BrokerContext
from ropeway.gateway.node.calls import Calls
from ropeway.gateway.node.cleanup import Cleanup, forget_ends, keep_forgotten
from ropeway.gateway.node.client_owners import ClientOwners
from ropeway.gateway.node.clients import Clients
from ropeway.gateway.node.creations import Creations
from ropeway.gateway.node.delays import Delays
from ropeway.gateway.node.drains import Drains, Waiting
from ropeway.gateway.node.fair_queueing import FairQueue
from ropeway.gateway.node.forwarder import Forwarder
from ropeway.gateway.node.groups import Groups
from ropeway.gateway.node.initial_topics import InitialTopics
from ropeway.gateway.node.latencies import Latencies
from ropeway.gateway.node.leadership import Leadership
from ropeway.gateway.node.locks import QueueLocks
from ropeway.gateway.node.long_polling import LongPolling
from ropeway.gateway.node.moved_messages import MovedMessages
from ropeway.gateway.node.moves import Moves, Unfinished
from ropeway.gateway.node.node import Node, monotonic_ms
from ropeway.gateway.node.node_auth import NodeAuth
from ropeway.gateway.node.offset_repair import TakenBack
from ropeway.gateway.node.pending_sends import PendingSends
from ropeway.gateway.node.quotas import Quotas
from ropeway.gateway.node.reauthorization import Reauthorization
from ropeway.gateway.node.reply_to import ReplyAddresses
from ropeway.gateway.node.resets import Resets
from ropeway.gateway.node.schedule import Schedule, parse_levels
from ropeway.gateway.node.shared_partitions import Held
from ropeway.gateway.node.source_routes import opened
from ropeway.gateway.node.timer.delivery import Delivery
from ropeway.gateway.node.timer.timer import Timer
from ropeway.gateway.node.topics import Topics
from ropeway.gateway.node.traffic import PulledOffsets, Traffic
from ropeway.gateway.node.transactions import Producers, Transactions
from ropeway.gateway.node.unique_keys import UniqueKeys
from ropeway.gateway.pop.context import PopContext
from ropeway.gateway.pop.in_flight import InFlight
from ropeway.gateway.pop.ledger import Ledger
from ropeway.gateway.pop.order import OrderBook
from ropeway.gateway.pop.service import MAX_POLLING, Pop
from ropeway.gateway.pop.switches import Switches
from ropeway.gateway.processors.admission import sender_check
from ropeway.gateway.processors.callbacks import (
    GroupChanges,
    check_transaction_state,
    notify_unsubscribe_lite,
)
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.tls import node_context
from ropeway.gateway.tracing import receiver
from ropeway.gateway.wire import properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AsyncExitStack

    from ropeway.gateway.backends import Storage
    from ropeway.gateway.config import Config
    from ropeway.gateway.node.leadership import Duty
    from ropeway.gateway.processors.registry import Processor
    from ropeway.gateway.tracing.spans import Spans
    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import Partition

log = structlog.get_logger(__name__)

_KNOW_OTHERS_EVERY_S = 1.0
_DISK_READS = 64
"""Pulls, of up to 4 MiB each, that may wait for the disk at the same time."""


class Builder:
    """Builds one node.

    Args:
        config: With the broker that it is of.
        node_name: Which of the broker's nodes it is.
        incarnation: Which process of that name it is.
        routes: Open already.
        storage: Likewise.
        store_host: Address and port that its clients are told, once it listens.
    """

    def __init__(
        self,
        config: Config,
        node_name: str,
        incarnation: str,
        routes: RouteStore,
        storage: Storage,
        store_host: Callable[[], bytes],
    ) -> None:
        self._config = config
        self._node_name = node_name
        self._incarnation = incarnation
        self._routes = routes
        self._storage = storage
        self._store_host = store_host

    async def build(self, stack: AsyncExitStack) -> Node:
        """Build the node; the stack closes what has to be closed.

        Raises:
            ConfigError: A setting cannot be used.
            LogError: The log does not open, or what stands on it.
        """
        config, routes, storage = self._config, self._routes, self._storage
        levels_ms = _levels_ms(config)
        suffix = property_suffix(config)
        topics = Topics(
            config,
            routes,
            storage.log,
            storage.compaction,
            partial(keep_forgotten, storage.offsets, storage.shared_log),
            Arrivals(storage.offsets),
        )
        pull_hold: LongPolling[Partition] = LongPolling(config.limits.held_pulls)
        resets = Resets(storage.offsets, time.monotonic)
        pulled = PulledOffsets()
        forgetting = Cleanup(
            *(storage.offsets, storage.shared_log, pull_hold, resets, pulled, topics)
        )
        topics.watch_deleted(forgetting.topic)
        broker = BrokerContext(
            *(config.broker, config.cluster, routes, topics),
            *(storage.offsets, storage.log, self._store_host, now_ms),
        )
        delivery = Delivery(broker)
        schedule = Schedule(broker, levels_ms, delivery)
        timer = self._timer(broker, delivery)
        delays = Delays(schedule, timer)
        dry_run = config.acl is not None and config.acl.dry_run
        owners = ClientOwners(dry_run=dry_run)
        clients = Clients(monotonic_ms, GroupChanges().tell, owners, config.creations)
        audit = access_control.open_audit(config, stack)
        for space in storage.adopted:
            assert config.pulsar is not None
            told = {"adopt": config.pulsar.adopt}
            audit.change("ADOPT", None, None, f"Namespace:{space}", None, told)
        guard = await access_control.open_guard(
            config, routes, audit, stack, os.environ
        )
        producers = Producers(clients, check_transaction_state, sender_check(guard))
        transactions = Transactions(broker, config.transactions, delays, producers)
        batches = Batches(broker, suffix, config.limits.batch_producers)
        groups = Groups(config, routes)
        pop = self._pop(broker, groups, resets, pulled, timer)
        topics.moving.left = forgetting.left
        topics.moving.clear_queue = partial(forgetting.queue, pop)
        locks = QueueLocks(monotonic_ms, storage.state)
        lite = self._lite(broker, clients)
        traffic = Traffic(config.cluster, topics, now_ms)
        duties: list[Duty] = [
            *(topics, InitialTopics(config, routes, topics, storage.log)),
            *(pull_hold, resets, schedule, timer, transactions, batches),
            *(pop, lite, clients, traffic),
        ]
        proofs = await _share(duties, storage, topics, pull_hold, clients, routes)
        leadership = Leadership(
            *(config.broker, self._node_name, routes, duties, proofs, self._incarnation)
        )
        secret = await access_control.cluster_secret(config, routes, os.environ)
        spans = _spans(config, self._node_name)
        forwarder = await _forwarder(config, secret, routes, stack, spans)
        delivery.elsewhere = MovedMessages(config.broker, routes, forwarder)
        delivery.elsewhere.watch_drains(timer.wake)
        signed = guard is not None and not dry_run
        reauthorization = Reauthorization()
        stack.callback(reauthorization.close)
        if guard is not None:
            guard.watch(reauthorization.rules_changed)
        return Node(
            config=config,
            processors=_processors(spans),
            spans=spans,
            leadership=leadership,
            forwarder=forwarder,
            guard=guard,
            audit=audit,
            reauthorization=reauthorization,
            reply_to=ReplyAddresses(secret, now_ms) if signed else None,
            log=storage.log,
            compaction=storage.compaction,
            offsets=storage.offsets,
            routes=routes,
            source=opened(config.migration, stack),
            topics=topics,
            groups=groups,
            clients=clients,
            creations=Creations(config.creations, time.monotonic),
            calls=Calls(),
            locks=locks,
            moves=Moves(
                *(broker, storage.shared_log, locks),
                Unfinished(pop, batches, transactions),
                *(delivery, leadership.is_certain),
            ),
            balance=Balance(config.balance, time.monotonic),
            drains=Drains(
                broker,
                Waiting(schedule, timer, transactions, batches),
                is_shared=storage.shared_log is not None,
            ),
            pull_hold=pull_hold,
            pending_sends=PendingSends(),
            resets=resets,
            pulled=pulled,
            schedule=schedule,
            delays=delays,
            traffic=traffic,
            quotas=Quotas(routes, config.limits.held_pulls, now_ms),
            timer=timer,
            transactions=transactions,
            pop=pop,
            lite=lite,
            batches=batches,
            unique_keys=UniqueKeys(),
            fair_queue=FairQueue(config.limits, storage.log, leadership),
            latencies=Latencies(),
            our_name=b'"n":' + msgspec.json.encode(config.broker),
            property_suffix=suffix,
            region_json=msgspec.json.encode(config.region),
            tasks=Tasks(),
            disk_reads=asyncio.Semaphore(_DISK_READS),
            started_ms=now_ms(),
        )

    def _timer(self, broker: BrokerContext, delivery: Delivery) -> Timer:
        config = self._config
        return Timer(
            broker,
            delivery,
            backends.index_directory(config, self._node_name, "timer"),
            self._storage.window_ms,
            int(config.timer.max_delay_hours * 3_600_000),
        )

    def _lite(self, broker: BrokerContext, clients: Clients) -> Lite:
        config = self._config
        return Lite(
            broker,
            config.limits.lite_topics,
            config.limits.held_pulls,
            backends.index_directory(config, self._node_name, "lite"),
            partial(notify_unsubscribe_lite, clients),
        )

    def _pop(
        self,
        broker: BrokerContext,
        groups: Groups,
        resets: Resets,
        pulled: PulledOffsets,
        timer: Timer,
    ) -> Pop:
        config = self._config
        broker = replace(broker, clock=monotonic_ms)
        directory = backends.index_directory(config, self._node_name, "pop")
        context = PopContext(
            broker=broker,
            config=config.pop,
            switches=Switches(self._routes, config.broker),
            resets=resets,
            pulled=pulled,
            in_flight=InFlight(config.pop.stay_ms),
            ledger=Ledger(broker, directory, self._storage.window_ms),
            book=OrderBook(),
            polling=LongPolling(config.limits.held_pulls, MAX_POLLING),
        )
        return Pop(context, groups, lambda: timer.topic)


async def _share(
    duties: list[Duty],
    storage: Storage,
    topics: Topics,
    pull_hold: LongPolling[Partition],
    clients: Clients,
    routes: RouteStore,
) -> list[Callable[[], float]]:
    """Add the duties of a node that may have others beside it, or has none.

    Returns:
        Until when it can be sure that none of those leads; nothing, where it is alone.
    """
    state, shared_log = storage.state, storage.shared_log
    if state is None:
        duties.insert(1, TakenBack(storage.offsets, topics))
        return []
    if shared_log is not None:
        held = duties[0] = Held(shared_log, topics, pull_hold, storage.offsets)
        routes.watch_topics(partial(forget_ends, shared_log, routes))
        # A node begins as a slave.
        await held.give_up()
        await clients.give_up()
    duties.insert(0, state)
    return [lambda: state.held_until_s, lambda: routes.held_until_s]


def _levels_ms(config: Config) -> list[int]:
    try:
        return parse_levels(config.delay_levels)
    except ValueError as error:
        raise ConfigError(f"delay_levels: {error}") from error


def property_suffix(config: Config) -> str:
    """What this broker adds to the properties of every message that is sent to it."""
    return properties.dump(
        {
            properties.MSG_REGION: config.region,
            properties.TRACE_ON: "true",
            properties.CLUSTER: config.cluster,
        }
    )


def _spans(config: Config, node_name: str) -> Spans | None:
    """What records spans, where they are asked for."""
    otlp = config.otlp
    if otlp is None or not otlp.traces:
        return None
    made: Spans = package("ropeway.gateway.tracing.spans", "otlp").Spans(
        receiver.endpoint(otlp), node_name
    )
    return made


def _processors(spans: Spans | None) -> Mapping[int, Processor]:
    if spans is None:
        return PROCESSORS
    from ropeway.gateway.processors.traced import traced  # noqa: PLC0415 - few want it

    return traced(PROCESSORS, spans)


async def _forwarder(
    config: Config,
    secret: str,
    routes: RouteStore,
    stack: AsyncExitStack,
    spans: Spans | None,
) -> Forwarder:
    try:
        tls = node_context(config.tls)
    except OSError as error:
        raise ConfigError(f"tls.nodes_ca cannot be used: {reason_of(error)}") from error
    forwarder = Forwarder(config.limits.frame_bytes, tls, NodeAuth(secret), spans)
    stack.push_async_callback(forwarder.close)
    if config.routes is not None:
        watching = asyncio.get_running_loop().create_task(
            _know_others(forwarder, routes, config.broker)
        )
        stack.callback(watching.cancel)
    return forwarder


async def _know_others(forwarder: Forwarder, routes: RouteStore, ours: str) -> None:
    """Keep at hand who leads the other brokers.

    Requests that name them come here from clients whose routes are old, or that know
    one address for several nodes.
    """
    while True:
        brokers = routes.brokers
        forwarder.others = {
            name: nodes[0] for name, nodes in brokers.items() if name != ours
        }
        await asyncio.sleep(_KNOW_OTHERS_EVERY_S)
