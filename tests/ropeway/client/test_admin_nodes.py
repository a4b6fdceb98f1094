"""Which nodes there are, and which of them leads."""

import time

import pytest

from ropeway.client import Admin, ResponseError, admin_nodes
from ropeway.client.admin_nodes import Node
from ropeway.client.errors import AdminError
from ropeway.gateway.wire.commands.nodes import NodeStatus
from tests.ropeway.client.scenario import PATIENT, scenario


@scenario
async def test_a_node_tells_how_it_stands(ropeway_gateway):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        (node,) = await admin_nodes.nodes(admin)
        assert (node.broker, node.rank, node.leads) == ("broker-0", 0, True)
        assert node.address == ropeway_gateway.address
        assert node.status is not None
        assert node.status.log == "embedded"
        # On one machine there is one clock.
        assert abs(node.clock_ms) <= node.round_trip_ms + 2
        runtime = await admin_nodes.runtime(admin, node.address)
        assert runtime["brokerVersionDesc"].startswith("Ropeway")
        settings = await admin_nodes.settings(admin, node.address)
        assert settings["brokerName"] == "broker-0"


@scenario
async def test_a_broker_that_is_not_there_is_an_error(ropeway_gateway):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(AdminError, match="no broker b9; there are broker-0"):
            await admin_nodes.nodes(admin, "b9")


@scenario
async def test_the_node_of_an_embedded_log_stays_the_master(ropeway_gateway):
    async with Admin(ropeway_gateway.name_server, config=PATIENT) as admin:
        with pytest.raises(ResponseError, match="embedded log, which no other node"):
            await admin_nodes.move(admin, "broker-0", "other")
        with pytest.raises(ResponseError, match="embedded log, which no other node"):
            [one async for one in admin_nodes.drain(admin, "127.0.0.1")]
        there = await admin_nodes.move(admin, "broker-0", "broker-0")
        assert (there.before, there.after) == ("broker-0", "broker-0")
        with pytest.raises(AdminError, match=r"no node x; there are broker-0 \("):
            [one async for one in admin_nodes.drain(admin, "x")]


class Nodes:
    """Brokers whose nodes do as they are told, in memory."""

    def __init__(self, brokers: dict[str, list[str]]) -> None:
        self.brokers = brokers
        self.asked: list[tuple[str, str | None]] = []
        self.silent: set[str] = set()

    def found(self, wanted: str | None) -> list[Node]:
        return [
            self.node(broker, rank, name)
            for broker, names in self.brokers.items()
            for rank, name in enumerate(names)
            if wanted in (None, broker)
        ]

    def node(self, broker: str, rank: int, name: str) -> Node:
        status = None if name in self.silent else stands(name, broker, leads=rank == 0)
        address = f"host-{name[0]}:{name[1]}"
        return Node(
            broker=broker,
            cluster="c",
            rank=rank,
            address=address,
            status=status,
            trouble="does not answer" if status is None else "",
        )

    def step_back(self, node: Node, successor: str | None) -> None:
        names = self.brokers[node.broker]
        self.asked.append((node.name, successor))
        names.remove(node.name)
        names.append(node.name)


def stands(name: str, broker: str, *, leads: bool) -> NodeStatus:
    return NodeStatus(
        node=name,
        broker=broker,
        cluster="c",
        version="1",
        leads=leads,
        log="pulsar",
        log_facts={},
        overdue_ms=0,
        routes="zookeeper",
        routes_held=True,
        time_ms=time.time_ns() // 1_000_000,
        started_ms=0,
    )


@pytest.fixture
def cluster(monkeypatch):
    """Two brokers: node names begin with the letter of their machine."""
    made = Nodes({"x": ["a1", "b1", "c1"], "y": ["b2", "a2"]})

    async def nodes(_: object, broker: str | None = None) -> list[Node]:
        return made.found(broker)

    async def step_back(_: object, node: Node, successor: str | None = None) -> None:
        made.step_back(node, successor)

    async def asked(_: object, node: Node) -> Node:
        return next(one for one in made.found(None) if one.name == node.name)

    monkeypatch.setattr(admin_nodes, "nodes", nodes)
    monkeypatch.setattr(admin_nodes, "step_back", step_back)
    monkeypatch.setattr(admin_nodes, "_asked", asked)
    return made


@scenario
async def test_nodes_before_the_new_master_make_room_for_it(cluster):
    moved = await admin_nodes.move(None, "x", "c1")
    assert (moved.broker, moved.before, moved.after) == ("x", "a1", "c1")
    assert cluster.asked == [("b1", None), ("a1", "c1")]
    assert cluster.brokers["x"] == ["c1", "b1", "a1"]


@scenario
async def test_a_new_master_has_to_be_there_and_to_answer(cluster):
    with pytest.raises(AdminError, match="broker x has no node d1; it has a1, b1, c1"):
        await admin_nodes.move(None, "x", "d1")
    cluster.silent.add("b1")
    with pytest.raises(AdminError, match="does not answer"):
        await admin_nodes.move(None, "x", "host-b:1")
    assert cluster.asked == []


@scenario
async def test_a_machine_is_drained_of_all_masters_and_its_slaves_are_last(cluster):
    moved = [one async for one in admin_nodes.drain(None, "host-b")]
    assert [(one.broker, one.after) for one in moved] == [("y", "a2")]
    assert cluster.brokers == {"x": ["a1", "c1", "b1"], "y": ["a2", "b2"]}


@scenario
async def test_a_node_that_a_move_has_put_last_does_not_step_back_again(cluster):
    cluster.brokers["x"] = ["a1", "a3", "b1", "c1"]
    moved = [one async for one in admin_nodes.drain(None, "host-a")]
    assert [(one.broker, one.after) for one in moved] == [("x", "b1")]
    assert cluster.brokers["x"] == ["b1", "c1", "a3", "a1"]
    assert cluster.asked.count(("a3", None)) == 1


@scenario
async def test_a_broker_without_a_node_elsewhere_is_not_drained(cluster):
    cluster.silent.add("a2")
    with pytest.raises(AdminError, match="broker y has no node that can lead"):
        [one async for one in admin_nodes.drain(None, "b2")]


@scenario
async def test_who_does_not_lead_in_time_is_named(cluster, monkeypatch):
    monkeypatch.setattr(admin_nodes, "LEAD_TIMEOUT_S", 0.05)
    monkeypatch.setattr(Nodes, "step_back", lambda *_: None)
    with pytest.raises(AdminError, match="node b1 is to lead broker x, and does not"):
        await admin_nodes.move(None, "x", "b1")
