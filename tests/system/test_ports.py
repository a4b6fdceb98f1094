"""Servers of tests take no port that was given to another, before either listens."""

from pathlib import Path

from tests.system.process import PORTS, free_ports
from tests.system.rocketmq import RocketMQ
from tests.system.ropeway import Ropeway


def test_nobody_is_given_a_port_that_a_rocketmq_broker_will_listen_on(
    tmp_path: Path,
) -> None:
    brokers = [RocketMQ(tmp_path).broker_port for _ in range(20)]
    given = set(free_ports(PORTS // 3))
    # The second is its fast remoting server (BrokerController, 5.5.0).
    assert given.isdisjoint({*brokers, *(port - 2 for port in brokers)})


def test_nobody_is_given_a_port_that_a_worker_will_listen_on(tmp_path: Path) -> None:
    options = ["--workers", "3"]
    nodes = [Ropeway(tmp_path, options=options).broker_port for _ in range(20)]
    given = set(free_ports(PORTS // 3))
    assert given.isdisjoint(port + worker for port in nodes for worker in range(3))


def test_a_port_that_was_given_is_not_given_again_soon() -> None:
    given = free_ports(PORTS)
    for first in range(0, PORTS - PORTS // 3, 7):
        soon = given[first : first + PORTS // 3]
        assert len(set(soon)) == len(soon)
