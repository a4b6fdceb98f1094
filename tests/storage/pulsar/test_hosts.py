"""The machines of partitions are those of the brokers that the look-up names."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from ropeway.storage.pulsar import hosts as module
from ropeway.storage.pulsar.commands import Lookup, LookupAnswer, LookupType
from ropeway.storage.pulsar.hosts import hosts
from ropeway.storage.pulsar.topic_names import PulsarName
from tests.remoting import looped
from tests.storage.pulsar.broker import FakeBroker, running
from tests.storage.pulsar.test_client import client

ORDERS = PulsarName("public", "default", "orders")


def spread_over(broker: FakeBroker, *machines: str, proxied: bool = False) -> None:
    """Have partitions served by machines in turn; those of "" by none."""

    def answer(_: object, asked: Lookup) -> LookupAnswer | None:
        machine = machines[int(asked.topic.rpartition("-")[2]) % len(machines)]
        if not machine:
            return None
        return LookupAnswer(
            f"pulsar://{machine}:6650",
            response=LookupType.CONNECT,
            request_id=asked.request_id,
            proxy_through_service_url=proxied,
        )

    broker.answers[Lookup] = answer


@looped
@pytest.mark.parametrize("proxied", [False, True])
async def test_each_partition_is_looked_up_and_nobody_connected_to(proxied: bool):
    async with running() as broker, client(broker.url) as one:
        spread_over(broker, "a.example.com", "10.0.0.1", proxied=proxied)
        found = await hosts(one, ORDERS, range(100))
        assert found == {
            number: ("a.example.com", "10.0.0.1")[number % 2] for number in range(100)
        }
        assert len(broker.peers) == 1


@looped
async def test_what_cannot_be_told_in_time_is_left_out(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 3)
    async with running() as broker, client(broker.url) as one:
        spread_over(broker, "a.example.com", "")
        with capture_logs() as logs:
            assert await hosts(one, ORDERS, range(4)) == dict.fromkeys(
                (0, 2), "a.example.com"
            )
        assert [line["found"] for line in logs] == [2]


@looped
async def test_a_refusal_is_no_error():
    async with running() as broker, client(broker.url) as one:
        broker.answers[Lookup] = lambda _, asked: LookupAnswer(
            None, response=LookupType.CONNECT, request_id=asked.request_id
        )
        with capture_logs() as logs:
            assert await hosts(one, ORDERS, range(3)) == {}
        assert "has no pulsar address" in logs[0]["reason"]
