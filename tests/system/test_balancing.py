"""Brokers on Pulsar balance their loads unasked, under clients, and then leave off."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin, Producer, admin_topics
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT
from tests.system.cluster import Cluster
from tests.system.test_cluster import running
from tests.system.test_rebalance import (
    BROKERS,
    PATIENCE_S,
    PAUSE_S,
    QUICK,
    in_order,
    read,
    reader,
    send_unevenly,
    until_known,
    until_placed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.ropeway import Ropeway
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]

SETTINGS = """\
[balance]
by_load = "{by_load}"
every_ms = 200
measure_ms = 2000
hits = 2
grace_ms = 3_600_000
[audit]
file = "audit.jsonl"
[http]
port = 0
"""
AFTER = 6
"""How many more looks find nothing to move."""


def log_of(node: Ropeway) -> str:
    return (node._directory / "ropeway.log").read_text()


def moves_of(node: Ropeway) -> int:
    """How many moves a node's log tells of, made or not."""
    return len(re.findall(r"a queue (?:moved|would move) by load", log_of(node)))


async def counted(node: Ropeway, what: str) -> float:
    """A counter of a node's balancing."""
    found = re.search(r"metrics and health at (\S+)", log_of(node))
    assert found
    page = await asyncio.to_thread(_get, f"{found[1]}/metrics")
    sample = re.search(rf"^ropeway_balance_{what}_total\S* (\S+)$", page, re.MULTILINE)
    assert sample, page
    return float(sample[1])


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
        return text


async def until_measured(node: Ropeway, more: int) -> None:
    """Return when a node has looked at loads so many times more."""
    wanted = await counted(node, "measurements") + more
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await counted(node, "measurements") >= wanted:
                return
            await asyncio.sleep(PAUSE_S)


async def until_told(node: Ropeway, moves: int) -> None:
    """Return when a node's log tells of so many moves."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if moves_of(node) >= moves:
                return
            await asyncio.sleep(PAUSE_S)


@looped
async def test_a_queue_moves_once_under_clients_and_nothing_when_loads_are_even(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
) -> None:
    made = Cluster(
        tmp_path,
        pulsar,
        zookeeper.address,
        brokers=BROKERS,
        settings=SETTINGS.format(by_load="on"),
    )
    first, second = made.nodes
    with running(made):
        for node in made.nodes:
            await until_known(node.name_server)
        where = made.name_server
        stop = asyncio.Event()
        async with (
            Admin(where, config=PATIENT) as admin,
            Producer(where, "senders", config=QUICK) as producer,
            reader(where, "live") as live,
        ):
            await admin_topics.create_on(admin, "orders", "broker-0", 3)
            await until_placed(admin, lambda found: list(found) == ["broker-0"])
            (old,) = (await admin_topics.places(admin, "orders")).values()
            await until_measured(first, AFTER)
            assert moves_of(first) == 0

            sending = asyncio.create_task(send_unevenly(producer, stop))
            lively = asyncio.create_task(read(live, {b"0"}, broker="broker-1"))
            after = {"broker-0": old[:2], "broker-1": old[2:]}
            await until_placed(admin, lambda found: found == after)
            # Half of what is sent goes to either broker now, as far as that is even.
            await until_measured(first, AFTER)
            assert await admin_topics.places(admin, "orders") == after
            assert moves_of(first) == await counted(first, "moves") == 1

            received = await lively
            stop.set()
            sent = await sending
            received += await read(live, set(sent) - {one.body for one in received})
            assert {one.body for one in received} == set(sent)
            assert in_order(received)
        # The other broker is not the first by name.
        assert await counted(second, "measurements") == moves_of(second) == 0
        audited = (first._directory / "audit.jsonl").read_text().splitlines()
        (line,) = [one for one in audited if "ROPEWAY_MOVE_QUEUE" in one]
        assert json.loads(line)["resource"] == "Topic:orders Broker:broker-0"


@looped
async def test_a_dry_run_says_what_would_move_and_moves_nothing(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
) -> None:
    made = Cluster(
        tmp_path,
        pulsar,
        zookeeper.address,
        brokers=BROKERS,
        settings=SETTINGS.format(by_load="dry-run"),
    )
    first = made.nodes[0]
    with running(made):
        for node in made.nodes:
            await until_known(node.name_server)
        where = made.name_server
        stop = asyncio.Event()
        async with (
            Admin(where, config=PATIENT) as admin,
            Producer(where, "p", config=QUICK) as producer,
        ):
            await admin_topics.create_on(admin, "orders", "broker-0", 3)
            await until_placed(admin, lambda found: list(found) == ["broker-0"])
            before = await admin_topics.places(admin, "orders")
            sending = asyncio.create_task(send_unevenly(producer, stop))
            await until_told(first, 2)
            stop.set()
            await sending
            assert await admin_topics.places(admin, "orders") == before
        assert await counted(first, "moves") == 0
