"""Several workers under one supervisor, as the Java client sees them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.harness import Session, bodies, numbered
from tests.clients.programs import CLIENTS
from tests.system.process import ServerProcess, ports_in_a_row
from tests.system.ropeway import PATIENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.fixtures import Agents

ROOT = Path(__file__).parents[2]
BROKERS = {"broker-0", "broker-1", "broker-2"}
COUNT = 300
JAVA = next(client for client in CLIENTS if client.mark == "jvm")


class Workers:
    """A gateway of three workers, on free ports."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self._ready = directory / "ready"
        settings = directory / "ropeway.toml"
        settings.write_text(PATIENT)
        # One that is killed finds its port free again, unlike one by chance.
        first = ports_in_a_row(len(BROKERS))[0]
        self._process = ServerProcess(
            "ropeway",
            [
                *(sys.executable, "-m", "ropeway.gateway.cli.main", "serve"),
                *("--workers", str(len(BROKERS)), "--listen", f"127.0.0.1:{first}"),
                *("--config", str(settings), "--data", str(self.data)),
                *("--ready-file", str(self._ready)),
            ],
            directory,
            {"PYTHONPATH": str(ROOT)},
        )
        self._process.wait_until(lambda: len(self.addresses) == len(BROKERS))
        self.name_server = ";".join(self.addresses)

    @property
    def addresses(self) -> list[str]:
        """Where the workers listen, once all of them do."""
        text = self._ready.read_text() if self._ready.exists() else ""
        return re.findall(r"advertised as (\S+)", text)

    def wait_until_all_have(self, topic: str) -> None:
        """Wait until a worker that was killed is back."""

        def have() -> bool:
            # Until it is, nobody answers there.
            with suppress(subprocess.CalledProcessError):
                return all(self.route(one, topic) == BROKERS for one in self.addresses)
            return False

        self._process.wait_until(have)

    def route(self, address: str, topic: str) -> set[str]:
        """The brokers that the `ropeway` command shows of a topic."""
        shown = self.command(address, "topic", "stats", topic)
        return {queue["broker"] for queue in json.loads(shown)["queues"]}

    def command(self, address: str, *words: str) -> str:
        """What a `ropeway` command prints."""
        return subprocess.run(
            [
                *(sys.executable, "-m", "ropeway.gateway.cli.main", *words),
                *("--name-server", address, "--json"),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def pid(self, broker: str) -> int:
        """The process that has a broker's log."""
        return int((self.data / broker / "log" / "lock").read_text())

    def stop(self) -> None:
        """Stop all of them."""
        self._process.stop()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    running = Workers(tmp_path)
    yield running
    running.stop()


@pytest.mark.jvm
def test_java_sees_all_workers_and_a_killed_one_loses_nothing(
    workers: Workers, agents: Agents, topic: str, group: str
) -> None:
    session = Session(agents.of(JAVA), workers.name_server)
    session.call("create_topic", topic=topic, queues=2).finish()
    workers.wait_until_all_have(topic)
    consumer = session.start("consume", topic=topic, group=group)
    sent = session.produce(topic, numbered(12, "before"))
    assert {one["broker"] for one in sent} == BROKERS
    killed = workers.pid("broker-1")
    sending = session.call(
        "produce",
        topic=topic,
        messages=numbered(COUNT),
        pause_ms=10,
        retry_for_ms=150_000,
    )
    sending.wait_for(COUNT // 3, "sent")
    os.kill(killed, signal.SIGKILL)
    sent += sending.finish().events("sent")
    assert {*bodies(sent)} >= {*bodies(numbered(COUNT))}
    consumer.wait_for_bodies(bodies(sent))
    consumer.stop()
    workers.wait_until_all_have(topic)
    assert workers.pid("broker-1") != killed
