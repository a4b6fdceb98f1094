"""The cluster: its brokers, their nodes, and how each does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from ropeway.client.errors import RemotingError
from ropeway.gateway import __version__
from ropeway.gateway.http import health
from ropeway.gateway.http.api.kinds import Kind, kinds
from ropeway.gateway.http.console import in_words
from ropeway.gateway.http.params import Params
from ropeway.gateway.http.replies import reply
from ropeway.gateway.http.state import state_of
from ropeway.gateway.node import names

if TYPE_CHECKING:
    from ropeway.gateway.http.state import State
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.wire import bodies

_MASTER = "0"


async def _overview(request: web.Request) -> web.Response:
    Params(request.query)
    state = state_of(request)
    node = state.app.node
    kind_of = kinds(node)
    info = await state.console.cluster_info()
    brokers = [broker for _, broker in sorted(info.broker_addr_table.items())]
    return reply(
        {
            "cluster": node.config.cluster,
            "version": __version__,
            "writable": state.config.writable,
            "log": "Pulsar" if node.config.pulsar else node.config.log_name,
            "routes": _routes(node),
            "node": {
                "broker": node.config.broker,
                "name": state.app.node_name,
                "role": health.role(node),
            },
            "topics": sum(kind_of(name) is Kind.NORMAL for name in node.routes.topics),
            "groups": sum(map(names.is_listed_group, node.routes.groups)),
            "brokers": await state.console.gather(
                _broker(state, broker) for broker in brokers
            ),
        }
    )


def _routes(node: Node) -> str:
    kept = node.config.routes or ""
    return "ZooKeeper" if kept.startswith("zookeeper:") else "embedded"


async def _broker(state: State, broker: bodies.BrokerData) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": broker.broker_name,
        "cluster": broker.cluster,
        "nodes": [
            {"id": int(number), "address": address}
            for number, address in sorted(broker.broker_addrs.items())
        ],
        "runtime": None,
        "error": None,
    }
    master = broker.broker_addrs.get(_MASTER)
    if master is None:
        return {**found, "error": "it has no master"}
    try:
        found["runtime"] = _runtime(await state.console.runtime(master))
    except RemotingError as error:
        found["error"] = in_words(error)
    return found


def _runtime(facts: dict[str, str]) -> dict[str, Any]:
    """What the page shows of it; RocketMQ's own brokers say the same."""

    def number(name: str) -> float:
        return float(facts.get(name, "0").split(" ")[0] or 0)

    return {
        "version": facts.get("brokerVersionDesc", ""),
        "started_ms": int(number("bootTimestamp")),
        "in_rate": number("putTps"),
        "out_rate": number("getTransferredTps"),
        "in_today": int(
            number("msgPutTotalTodayNow") - number("msgPutTotalTodayMorning")
        ),
        "out_today": int(
            number("msgGetTotalTodayNow") - number("msgGetTotalTodayMorning")
        ),
        "disk_used": number("commitLogDiskRatio")
        if "commitLogDiskRatio" in facts
        else None,
    }


ROUTES = [web.get("/api/overview", _overview)]
