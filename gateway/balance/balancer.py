"""Moving queues by load unasked, where it is wanted: one node, one queue at a time.

What it does every so often is `ropeway route rebalance --all --by-load`: the same
measurement, the same choice and the same request. `gateway.node.balance` says when a
move may be made, and this file does it.

The master of the first broker by name does it for the cluster, so routes say who, and
there is no other election. Where two nodes hold themselves for that for a moment, each
measures several times before it moves anything; and should they move queues at the same
time, each move is still one compare-and-set of its topic's route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.acl.api import Channel, Principal, Source
from ropeway.client import admin_loads, admin_nodes
from ropeway.client.admin import Admin
from ropeway.client.errors import RemotingError
from ropeway.gateway.http.on_behalf import OnBehalf
from ropeway.gateway.node import names
from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from ropeway.client.admin_loads import LoadMove
    from ropeway.gateway.app import App
    from ropeway.gateway.pulsar_config import BalanceConfig

log = structlog.get_logger(__name__)

HOOK = "node"
"""Stands in the audit log before the node's name, where others have their hook's."""


class Balancer:
    """Measures loads and moves one queue at a time, on the node that is to.

    Args:
        app: The node.
        config: How often it measures, and for how long.
    """

    def __init__(self, app: App, config: BalanceConfig) -> None:
        self._node = app.node
        self._config = config
        self._is_dry = config.by_load == "dry-run"
        self._address = address = app.server.listeners[0].advertised
        self._connections = OnBehalf(
            app.node.forwarder,
            Source(host_port.split(address)[0], Channel.FORWARDED),
            # Other nodes believe it by the cluster's secret, which proves more.
            Principal(app.node_name, HOOK, super=True),
        )

    async def step(self) -> None:
        """Measure once, if this node is to, and make the move that is due, if any."""
        balance = self._node.balance
        if not self.is_chosen():
            balance.forget()
            return
        try:
            async with Admin(self._address, connections=self._connections) as admin:
                await self._look(admin)
        except RemotingError as error:
            balance.failed += 1
            balance.forget()
            log.warning("loads cannot be balanced now", reason=str(error))

    def is_chosen(self) -> bool:
        """Whether this node is the master of the first broker of its cluster."""
        config = self._node.config
        running = [
            name
            for name, nodes in self._node.routes.brokers.items()
            if nodes[0].cluster == config.cluster
        ]
        first = min(running, default=None)
        return first == config.broker and self._node.leadership.is_certain()

    async def _look(self, admin: Admin) -> None:
        balance = self._node.balance
        over_s = self._config.measure_ms / 1000
        planned: list[LoadMove] = []
        if await self._may_be_uneven(admin):
            planned = await admin_loads.plan(admin, self._topics(), over_s=over_s)
        due = balance.due(planned)
        if not due or not self.is_chosen():
            return
        if self._is_dry:
            balance.forget()
            _say("a queue would move by load", due[0])
        elif made := await admin_loads.rebalance(admin, due):
            balance.note(made.move)
            _say("a queue moved by load", made)

    async def _may_be_uneven(self, admin: Admin) -> bool:
        """Whether it is worth asking for each topic: one broker is sent more.

        By the last seconds, and with what brokers send to themselves. Where that hides
        something, loads as a whole are even.
        """
        cluster = self._node.config.cluster
        rates = []
        for nodes in self._node.routes.brokers.values():
            if nodes[0].cluster == cluster:
                told = await admin_nodes.runtime(admin, nodes[0].addresses[0])
                rates.append(float(told["putTps"].split()[0]))
        return admin_loads.is_uneven(rates)

    def _topics(self) -> list[str]:
        """Those whose queues can move: of clients, and of this cluster's brokers."""
        routes, cluster = self._node.routes, self._node.config.cluster
        brokers = {
            name
            for name, nodes in routes.brokers.items()
            if nodes[0].cluster == cluster
        }
        return [
            name
            for name, topic in sorted(routes.topics.items())
            if brokers & topic.route.keys()
            and name not in (cluster, *topic.route)
            and not (names.is_system_topic(name) or names.is_derived(name))
        ]


def _say(what: str, made: LoadMove) -> None:
    log.info(
        what,
        topic=made.move.topic,
        partition=made.move.partition,
        giver=made.move.giver,
        taker=made.move.taker,
        queue_per_s=round(made.per_s, 1),
        giver_per_s=round(made.giver_per_s, 1),
        taker_per_s=round(made.taker_per_s, 1),
        average_per_s=round(made.average_per_s, 1),
        took_ms=made.move.took_ms,
    )
