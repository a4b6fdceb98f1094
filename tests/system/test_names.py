"""Nodes that lose their place in ZooKeeper, or share a name, while clients send."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Message, Producer, RemotingError
from tests.clients.harness import WAIT_SECONDS
from tests.remoting import looped, until
from tests.system.cluster import Cluster
from tests.system.faults import read_all
from tests.system.node_places import places
from tests.system.process import stopped
from tests.system.ropeway import ROOT, Ropeway
from tests.system.test_cluster import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.slow]

LEADS = "this node is the master now"
MORE = 5
"""So many sends go well before a fault, and after it."""


def told(node: Ropeway, line: str) -> int:
    """How often a node's log says something."""
    return (node._directory / "ropeway.log").read_text().count(line)


@asynccontextmanager
async def sends(cluster: Cluster) -> AsyncIterator[list[bytes]]:
    """One message after the other is sent meanwhile; all are there afterwards."""
    stop = asyncio.Event()
    acknowledged: list[bytes] = []

    async def send_on(producer: Producer) -> None:
        for number in itertools.count():
            while not stop.is_set():
                with suppress(RemotingError):
                    await producer.send(Message("orders", b"%d" % number))
                    acknowledged.append(b"%d" % number)
                    break
                await asyncio.sleep(0.05)
            else:
                return

    async with Producer(cluster.name_server, "senders") as producer:
        sending = asyncio.create_task(send_on(producer))
        try:
            await until(lambda: len(acknowledged) > MORE)
            yield acknowledged
            before = len(acknowledged)
            await until(lambda: len(acknowledged) > before + MORE)
        finally:
            stop.set()
            await sending
    stored = await read_all(cluster, "orders")
    assert {body.encode() for queue in stored for body in queue} >= {*acknowledged}


async def copy(directory: Path, cluster: Cluster) -> tuple[int, str]:
    """Start another process of the first node's name; its exit code and its output."""
    one = Ropeway(directory, options=cluster.nodes[0]._options)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ropeway.gateway.cli.main", "serve"),
        *("--listen", one.name_server, "--data", str(directory / "data")),
        *one._options,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode()


@looped
async def test_a_second_process_of_a_name_is_refused_and_disturbs_nobody(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    with (
        running(Cluster(tmp_path, pulsar, zookeeper.address)) as cluster,
        places(cluster.routes) as held,
    ):
        first = cluster.nodes[0]
        async with sends(cluster):
            code, out = await copy(tmp_path / "copy", cluster)
        assert code == 1
        assert "node node-0 of broker broker-0 runs already" in out
        assert f"at {first.name_server}" in out
        assert LEADS not in out
        assert held.order() == ["node-0", "node-1"]
        assert told(first, LEADS) == 1
        assert told(first, "state is led by this node no more") == 0


@looped
async def test_who_loses_its_place_is_announced_again_and_all_goes_on(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    with (
        running(Cluster(tmp_path, pulsar, zookeeper.address)) as cluster,
        places(cluster.routes) as held,
    ):
        async with sends(cluster):
            # Each way is taken with the standby first, and then with the master.
            for lose in (held.delete, held.expire):
                master, standby = held.order()
                lose(standby)
                await until(lambda: sorted(held.order()) == ["node-0", "node-1"])
                assert held.order() == [master, standby]
                next_one = cluster.nodes[int(standby[-1])]
                led = told(next_one, LEADS)
                lose(master)
                lost_s = time.monotonic()
                await until(lambda: held.order() == [standby, master])  # noqa: B023
                await until(lambda: told(next_one, LEADS) > led)  # noqa: B023
                print(f"{lose.__name__}: {time.monotonic() - lost_s:.2f} s")


@looped
async def test_a_node_that_was_killed_is_started_again_at_once(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    with (
        running(Cluster(tmp_path, pulsar, zookeeper.address)) as cluster,
        places(cluster.routes) as held,
    ):
        first = cluster.nodes[0]
        async with sends(cluster):
            first.kill()
            await asyncio.to_thread(first.start)
            assert held.order() == ["node-1", "node-0"]
        # Once at most: where it started slowly, the name was free by then.
        assert told(first, "another process has the name of this node; waiting") <= 1


@looped
async def test_a_node_whose_name_was_taken_while_it_stood_still_ends(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    with (
        running(Cluster(tmp_path, pulsar, zookeeper.address)) as cluster,
        places(cluster.routes) as held,
    ):
        first = cluster.nodes[0]
        other = Ropeway(tmp_path / "copy", options=first._options)
        try:
            async with sends(cluster):
                with stopped(first.broker_pid):
                    await asyncio.to_thread(other.start)
                await until(lambda: told(first, "runs already"))
                assert first._process is not None
                process = first._process._process
                assert await asyncio.to_thread(process.wait, WAIT_SECONDS) == 1
                first.kill()
                assert (
                    other.name_server in (first._directory / "ropeway.log").read_text()
                )
                other.stop()
                await asyncio.to_thread(first.start)
                assert held.order() == ["node-1", "node-0"]
        finally:
            other.kill()
