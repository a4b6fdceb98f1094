"""docs/deployment.md: nodes start by its command line, its commands are run on them."""

from __future__ import annotations

import itertools
import os
import shlex
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from tests.pages import DOCS, follow
from tests.patience import have_patient_commands
from tests.system.cluster import SESSION_MS
from tests.system.ropeway import Ropeway
from tests.test_page_blocks import shown, split

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.pulsar import Pulsar
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]
PATIENCE_S = 120.0
numbers = itertools.count(1)


class Machines:
    """The machines of the page: mq1 and mq2 for broker-0, and mq3 for broker-1."""

    def __init__(self, folder: Path, pulsar: Pulsar, zookeeper: ZooKeeper) -> None:
        (line,) = [
            line for _, line, _ in shown("docs/deployment.md") if "--pulsar " in line
        ]
        name = f"page-{os.getpid()}-{next(numbers)}"
        here = {
            "pulsar://pulsar.example.com:6650": pulsar.service_url,
            "http://pulsar.example.com:8080": pulsar.admin_url,
            "zookeeper://zk1.example.com:2181,zk2.example.com:2181,"
            "zk3.example.com:2181/ropeway": f"zookeeper://{zookeeper.address}/{name}",
        }
        for there, address in here.items():
            assert there in line
            line = line.replace(there, address)
        self._cluster = name
        self._nodes: dict[str, Ropeway] = {}
        for node, broker in {"mq1": 0, "mq2": 0, "mq3": 1}.items():
            mine = line.replace("broker-0", f"broker-{broker}").replace("mq1", node)
            words = split(mine)[1:]
            # Where it listens is this machine's to say; so is that it is busy.
            at = words.index("--listen")
            del words[at : at + 2]
            one = Ropeway(folder / node, options=[*words, "--cluster", name])
            with (folder / node / "ropeway.toml").open("a") as file:
                file.write(f"[zookeeper]\nsession_ms = {SESSION_MS}\n")
            self._nodes[node] = one
        self.name_server = ";".join(
            self._nodes[name].name_server for name in ("mq1", "mq2")
        )

    def start(self, *names: str) -> None:
        """Start machines, and wait until all that run know each other."""
        for name in names:
            if not self._nodes[name].runs:
                self._nodes[name].start()
        running = [name for name, node in self._nodes.items() if node.runs]
        self._until("broker list", lambda said: all(name in said for name in running))

    def stop(self, name: str) -> None:
        """Stop a machine in order."""
        self._nodes[name].stop()

    def kill(self, *names: str) -> None:
        """End machines, or all of them, without warning."""
        for name in names or self._nodes:
            self._nodes[name].kill()

    def run(self, line: str) -> str:
        """Run a command of the page, with the machines as the page has them there."""
        _, *words = shlex.split(line, comments=True)
        if words[:2] == ["route", "rebalance"]:
            # "Start nodes with another --broker".
            self.start("mq3")
        if words[:2] == ["broker", "remove"]:
            if "--gone" in words:
                self.start("mq3")
                self.kill("mq3")
            else:
                self.stop("mq3")
            self._until("broker list", lambda said: "broker-1" not in said)
        said = ropeway(*words).replace(self._cluster, "DefaultCluster")
        if words[-1] == "--yes" and words[0] == "route":
            self._until("route show orders", lambda said: queues(said)[1:] == ["2"])
        if words[-1] == "--yes" and words[:2] == ["broker", "drain"]:
            self._until("route show orders", lambda said: queues(said) == ["4"])
        return said

    def _until(self, line: str, is_so: Callable[[str], bool]) -> None:
        """Wait until each machine says so: it hears of changes through ZooKeeper."""
        give_up = time.monotonic() + PATIENCE_S
        for node in self._nodes.values():
            while node.runs:
                said = ropeway(*line.split(), "-n", node.name_server)
                if is_so(said):
                    break
                assert time.monotonic() < give_up, (line, said)
                time.sleep(0.1)


def queues(said: str) -> list[str]:
    """How many queues a topic has, by `route show`: a number for each broker."""
    return [line.split()[3] for line in said.splitlines()[1:]]


def ropeway(*words: str) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def test_its_commands_print_what_stands_there(
    pulsar: Pulsar,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machines = Machines(tmp_path, pulsar, zookeeper)
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)
    monkeypatch.setenv("ROPEWAY_NAME_SERVER", machines.name_server)
    have_patient_commands(monkeypatch)
    try:
        machines.start("mq1", "mq2")
        follow(DOCS / "deployment.md", machines.run)
    finally:
        machines.kill()
