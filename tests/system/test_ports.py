"""Servers of tests take no port that was given to another, before either listens."""

from pathlib import Path

import pytest

from tests.system import process
from tests.system.process import PORTS, free_ports, ports_in_a_row
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


def test_many_in_a_row_are_found_whatever_was_given_before() -> None:
    for _ in range(10):
        free_ports(PORTS // 2)
        first, *rest = ports_in_a_row(PORTS // 4)
        assert rest == list(range(first + 1, first + PORTS // 4))


def test_where_none_are_free_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "is_free", lambda port: bool(port % 2))
    ports_in_a_row(1)
    with pytest.raises(RuntimeError, match="no 2 in a row are free"):
        ports_in_a_row(2)
