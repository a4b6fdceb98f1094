"""docs/how-to.md: an operator's tasks, walked on a node with TLS and access control."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import ssl
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner
from msgspec import structs

from ropeway.client import RETRY, Admin, Credentials, admin_dlq
from ropeway.gateway.cli.main import main
from ropeway.testing import Gateway
from tests.gateway.test_tls import issue
from tests.pages import DOCS, files, follow
from tests.ropeway.client.scenario import CONSUMER, PATIENT, Inbox, consumer, eventually
from tests.system.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "how-to.md"
SITE, HOST = "mq-1.example.com:8080", "mq-1.example.com:9876"
PASSWORDS = ("ops", "shop", "prometheus")


class Walk:
    """The machine of the page, as far as its commands see it.

    Args:
        folder: Stands for all folders of the page; commands are given there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._page,) = free_ports(1)
        ca = issue(folder, "ca")
        issue(folder, "node", ca, address="127.0.0.1")
        for name, text in files(PAGE).items():
            (folder / name).write_text(self._here(text))
        for name in PASSWORDS:
            (folder / f"{name}.password").write_text(f"{name}-secret\n")
        for file in folder.iterdir():
            file.chmod(0o600)
        options = ["--config", str(folder / "ropeway.toml")]
        self.gateway = Gateway(folder / "data", options)
        self._services = {
            "start": self.gateway.start,
            "stop": self.gateway.stop,
            "restart": self.gateway.restart,
        }

    def _here(self, text: str) -> str:
        """What stands on the page, as it is on this machine."""
        for folder in ("/etc/ropeway/", "/srv/ropeway/", "/srv/"):
            text = text.replace(folder, f"{self._folder}/")
        return text.replace("port = 8080", f"port = {self._page}")

    def run(self, line: str) -> str:
        """Run a command line of the page; what it prints."""
        line = self._here(line).replace(SITE, f"127.0.0.1:{self._page}")
        if HOST in line:
            line = line.replace(HOST, self.gateway.address)
        program, *words = shlex.split(line)
        if program == "systemctl":
            self._services[words[0]]()
            return ""
        if program == "cp":
            shutil.copytree(words[-2], words[-1])
            return ""
        assert program == "ropeway", line
        if words[:3] == ["message", "dlq", "list"]:
            asyncio.run(self._give_up())
        words, (_, *to) = split(words, ">")
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, (line, done.output, done.exception)
        if to:
            (self._folder / to[0]).write_text(done.stdout)
        return done.stdout

    async def _give_up(self) -> None:
        """Consume as the page's application, which cannot handle what it gets."""
        config = structs.replace(
            CONSUMER,
            tls=ssl.create_default_context(cafile=str(self._folder / "ca.pem")),
            credentials=Credentials(access_key="shop", secret_key="shop-secret"),
        )
        inbox = Inbox()

        async def handler(message):
            await inbox(message)
            return RETRY

        reader = consumer(
            self.gateway.address, "kitchen", config=config, max_reconsume_times=0
        )
        reader.subscribe("orders", "*", handler)
        as_root = structs.replace(
            PATIENT,
            tls=config.tls,
            credentials=Credentials(access_key="ops", secret_key="ops-secret"),
        )
        async with reader, Admin(self.gateway.address, config=as_root) as admin:
            await inbox.wait_for(b"one coffee", b"two teas")
            await eventually(
                lambda: admin_dlq.count(admin, "kitchen"), lambda count: count == 2
            )


def split(words: list[str], at: str) -> tuple[list[str], list[str]]:
    """Words up to one, and from there on; that one alone where there is none."""
    where = words.index(at) if at in words else len(words)
    return words[:where], words[where:] or [at]


@pytest.fixture
def walk(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("ROPEWAY_TLS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    found = Walk(tmp_path)
    yield found
    found.gateway.kill()


def test_an_operators_tasks_are_done_on_a_secured_node(walk):
    follow(PAGE, walk.run)
    # What Kubernetes would scale by is what the node tells.
    scaler = yaml.safe_load(files(PAGE)["kitchen-scaler.yaml"])
    (trigger,) = scaler["spec"]["triggers"]
    found = re.fullmatch(r"sum\((\w+)\{(.*)\}\)", trigger["metadata"]["query"])
    assert found is not None
    told = walk.run(f"ropeway metrics {found[1]}")
    row = next(line for line in told.splitlines() if line.startswith(found[1]))
    for label in found[2].split(", "):
        assert label.replace('"', "") in row.replace('"', ""), row
