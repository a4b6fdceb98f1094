"""Several workers: one route, restarts, one end, and no process left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import psutil
import pytest
from structlog.testing import capture_logs

from ropeway.client import Admin, Message, Producer
from ropeway.gateway import supervisor, workers
from ropeway.gateway.config import ListenerConfig
from ropeway.gateway.errors import WorkerError
from ropeway.gateway.supervisor import supervise
from ropeway.gateway.worker import Listening, Orders
from tests.remoting import config, looped, until
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENT,
    PRODUCER,
    Inbox,
    consumer,
    eventually,
    numbered,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

TIMEOUT_S = 60


def workers_left() -> list[psutil.Process]:
    """Those that we started; other tests have processes of theirs."""
    return [
        child
        for child in psutil.Process().children()
        if "ropeway.gateway.worker_process" in child.cmdline()
    ]


class Running:
    """Two workers under a supervisor in this process."""

    def __init__(self, data: Path, reports: list[Listening]) -> None:
        self.data = data
        self.addresses = [one.endpoints[0].advertised for one in reports]
        self.name_server = ";".join(self.addresses)

    def worker(self, name: str) -> psutil.Process:
        """The process that has a worker's log."""
        return psutil.Process(int((self.data / name / "log" / "lock").read_text()))

    async def masters(self, address: str) -> set[str]:
        """The brokers that a name server knows."""
        async with Admin(address, config=PATIENT) as admin:
            clusters = await admin.clusters()
        return set(clusters["DefaultCluster"])


@asynccontextmanager
async def supervised(data: Path, **changes: object) -> AsyncIterator[Running]:
    stop = asyncio.Event()
    listening: asyncio.Future[list[Listening]] = asyncio.Future()
    configs = workers.split(config(data, **changes), 2)
    ports = workers.sites(configs)
    orders = [Orders(one, "info", "text", ports) for one in configs]
    task = asyncio.create_task(supervise(orders, stop, listening.set_result))
    try:
        await asyncio.wait(
            {task, listening}, timeout=TIMEOUT_S, return_when="FIRST_COMPLETED"
        )
        if task.done():
            await task
        async with asyncio.timeout(TIMEOUT_S):
            yield Running(data, listening.result())
    finally:
        stop.set()
        with contextlib.suppress(WorkerError):
            await asyncio.wait_for(task, TIMEOUT_S)
        assert not workers_left()


async def tell_of_all(running: Running) -> None:
    brokers = {"broker-0", "broker-1"}
    for address in running.addresses:
        assert await running.masters(address) == brokers
        async with Admin(address, config=PATIENT) as admin:
            await admin.create_topic(f"orders-{address[-5:]}", 3)
    for address in running.addresses:
        async with Admin(address, config=PATIENT) as admin:
            for other in running.addresses:
                topic = f"orders-{other[-5:]}"
                queues = await admin.describe_topic(topic)
                assert len(queues) == 6
                assert {one.queue.broker_name for one in queues} == brokers
    async with Admin(running.addresses[0], config=PATIENT) as admin:
        await admin.delete_topic(topic)
    async with Admin(running.addresses[1], config=PATIENT) as admin:
        assert topic not in await admin.topics()


@pytest.mark.slow
@looped
async def test_workers_tell_of_all_and_one_that_is_killed_comes_back_with_all(tmp_path):
    acknowledged: list[bytes] = []
    inbox = Inbox()
    async with supervised(tmp_path) as running:
        await tell_of_all(running)
        async with Admin(running.name_server, config=PATIENT) as admin:
            await admin.create_topic("orders", 2)
        reader = consumer(running.name_server, "readers", config=CONSUMER)
        reader.subscribe("orders", "*", inbox)
        async with (
            Producer(running.name_server, "senders", config=PRODUCER) as producer,
            reader,
        ):

            async def send(bodies: list[bytes]) -> None:
                for body in bodies:
                    await producer.send(Message("orders", body), timeout_s=30)
                    acknowledged.append(body)

            await send(numbered(50, "before"))
            await inbox.wait_for(*acknowledged)
            assert {one.queue.broker_name for one in inbox.messages} == {
                "broker-0",
                "broker-1",
            }
            killed = running.worker("broker-0").pid
            sending = asyncio.create_task(send(numbered(300, "during")))
            await until(lambda: len(acknowledged) > 100)
            os.kill(killed, signal.SIGKILL)
            await sending
            async with Admin(running.addresses[1], config=PATIENT) as admin:
                spans = await eventually(
                    lambda: admin.describe_topic("orders"),
                    lambda spans: len(spans) == 4,
                )
            assert sum(span.end for span in spans) >= len(acknowledged)
            assert running.worker("broker-0").pid != killed
            await send(numbered(50, "after"))
            async with asyncio.timeout(TIMEOUT_S):
                await inbox.wait_for(*acknowledged)
        async with Admin(running.addresses[0], config=PATIENT) as admin:
            assert len(await admin.describe_topic("orders")) == 4


@looped
async def test_a_dead_worker_leaves_the_route_and_one_that_does_not_stop_is_killed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 60.0)
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE_S", 60.0)
    monkeypatch.setattr(supervisor, "_KILL_AFTER_S", 0.0)
    with capture_logs() as logs:
        async with supervised(tmp_path, shutdown_ms=1) as running:
            second = running.addresses[1]
            assert await running.masters(second) == {"broker-0", "broker-1"}
            running.worker("broker-0").kill()
            await eventually(
                lambda: running.masters(second), lambda found: found == {"broker-1"}
            )
            running.worker("broker-1").suspend()
    killed = [line["broker"] for line in logs if line["event"] == "worker killed"]
    assert killed.count("broker-1") == 1


@pytest.mark.slow
@looped
async def test_a_worker_that_does_not_last_ends_all(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "MOST_STARTS", 2)
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.0)
    # On a loaded machine a worker takes long to find out that it cannot start.
    monkeypatch.setattr(supervisor, "STEADY_S", 3600.0)
    stop = asyncio.Event()
    listening = asyncio.Event()
    orders = [Orders(one, "info", "text") for one in workers.split(config(tmp_path), 2)]
    task = asyncio.create_task(supervise(orders, stop, lambda _: listening.set()))
    await asyncio.wait_for(listening.wait(), TIMEOUT_S)
    lock = tmp_path / "broker-1" / "log" / "lock"
    worker = int(lock.read_text())
    # It must not write into what is being removed.
    os.kill(worker, signal.SIGSTOP)
    shutil.rmtree(tmp_path / "broker-1")
    (tmp_path / "broker-1").write_text("no directory")
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(WorkerError, match="broker-1 ended 2 times in a row"):
        await asyncio.wait_for(task, TIMEOUT_S)
    assert not workers_left()


@looped
async def test_a_port_in_use_is_named_and_no_worker_stays(tmp_path):
    # The one before it may be in use as well, by somebody else.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = (ListenerConfig(port=port - 1),)
        with pytest.raises(
            WorkerError, match=f"did not start: .*:({port}|{port - 1}): "
        ):
            async with supervised(tmp_path, listeners=listeners):
                pass


class Serving(NamedTuple):
    """A supervisor's process, its workers, and where each has its page."""

    process: subprocess.Popen[str]
    children: list[psutil.Process]
    sites: list[str]


@pytest.fixture
def serving(tmp_path) -> Iterator[Serving]:
    """`ropeway serve --workers 2` and its workers."""
    settings = tmp_path / "small.toml"
    settings.write_text("[log]\nsegment_bytes = 1048576\n")
    process = subprocess.Popen(
        [
            *(
                sys.executable,
                "-m",
                "ropeway.gateway.cli.main",
                "serve",
                "--workers",
                "2",
            ),
            *("--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"),
            *("--ready-file", str(tmp_path / "ready"), "--http", "127.0.0.1:0"),
            *("--config", str(settings)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    sites = []
    while not (line := process.stdout.readline()).startswith("Point a client"):
        assert line, process.communicate()[1]
        if line.startswith("page, metrics and health at "):
            sites.append(line.split()[-1])
    children = psutil.Process(process.pid).children()
    yield Serving(process, children, sites)
    for one in [process, *children]:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    process.communicate()


@pytest.mark.slow
def test_each_has_a_page_and_a_signal_ends_all_and_logs_name_the_broker(
    serving, tmp_path
):
    process, children, sites = serving
    assert len(children) == len(set(sites)) == 2
    for site in sites:
        for path, found in {"/readyz": b"", "/": b"<title>Ropeway</title>"}.items():
            with urllib.request.urlopen(f"{site}{path}", timeout=TIMEOUT_S) as answer:
                assert answer.status == 200
                assert found in answer.read()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    assert not any(one.is_running() for one in children)
    assert sorted(re.findall(r"event=stopped(.*)", errors)) == [
        "",
        " broker=broker-0",
        " broker=broker-1",
    ]
    ready = (tmp_path / "ready").read_text().splitlines()
    assert [line.split(":")[0] for line in ready] == ["listening on 127.0.0.1"] * 2


def test_workers_end_when_their_supervisor_is_killed(serving):
    process, children, _ = serving
    process.kill()
    gone, left = psutil.wait_procs(children, TIMEOUT_S)
    assert (len(gone), left) == (2, [])
