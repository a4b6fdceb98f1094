"""The guides of docs/how-to, walked in their order: what a machine is for them."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import ssl
from itertools import takewhile
from typing import TYPE_CHECKING

from click.testing import CliRunner
from msgspec import structs

from ropeway.client import RETRY, Admin, Credentials, admin_dlq
from ropeway.gateway.cli.main import main
from tests.gateway.test_tls import issue
from tests.pages import DOCS, blocks, files, follow, steps
from tests.ropeway.client.scenario import CONSUMER, PATIENT, Inbox, consumer, eventually
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

GUIDES = DOCS / "how-to"
PAGES = [
    GUIDES / name
    for name in re.findall(
        r"^\| \[[^]]+\]\((.+?)\)", (GUIDES / "README.md").read_text(), re.MULTILINE
    )
]
"""In the order of their table."""
FILES = {name: text for page in PAGES for name, text in files(page).items()}
HOST = "mq-1.example.com"
PASSWORDS = ("ops", "shop", "prometheus")
FAILING = {
    step.command
    for page in PAGES
    for step in steps(*blocks(page, "console"))
    if any(line.startswith(("Error: ", "denied: ")) for line in step.output)
}
"""Commands that are shown with an error, or say no."""


class Walk:
    """The machine of the guides, as far as their commands see it.

    Args:
        folder: Stands for the folders of the pages; commands are given there.
        site: The port of the node's page.
    """

    def __init__(self, folder: Path, site: int) -> None:
        self._folder = folder
        (nobody,) = free_ports(1)
        self._ports = {"8080": str(site), "9999": str(nobody)}
        ca = issue(folder, "ca")
        issue(folder, "node", ca, address="127.0.0.1")
        for name in PASSWORDS:
            (folder / f"{name}.password").write_text(f"{name}-secret\n")
        for name, text in FILES.items():
            (folder / name).write_text(self.here(text))
        for file in folder.iterdir():
            file.chmod(0o600)
        self.name_server = ""
        """Known before the first command that goes there."""
        self.services: dict[str, Callable[[], None]] = {}
        """What systemctl does with the nodes."""
        self.differs: dict[str, str] = {}
        """What these nodes print, and what the one of the pages prints for it."""

    def here(self, text: str) -> str:
        """What stands on a page, as it is on this machine."""
        for folder in ("/etc/ropeway/", "/srv/ropeway/", "/srv/"):
            text = text.replace(folder, f"{self._folder}/")
        return text.replace("port = 8080", f"port = {self._ports['8080']}")

    def run(self, line: str) -> str:
        """Run a command line of a page; what it prints."""
        is_wrong = line in FAILING
        line = self.here(line)
        for port, here in self._ports.items():
            line = line.replace(f"{HOST}:{port}", f"127.0.0.1:{here}")
        program, *words = shlex.split(line.replace(f"{HOST}:9876", self.name_server))
        if program == "systemctl":
            self.services[words[0]]()
        elif program == "cp":
            shutil.copytree(words[-2], words[-1])
        elif program == "mv":
            shutil.move(*words)
        else:
            assert program == "ropeway", line
            return self._ropeway(words, is_wrong=is_wrong)
        return ""

    def _ropeway(self, words: list[str], *, is_wrong: bool) -> str:
        if words[:3] == ["message", "dlq", "list"]:
            asyncio.run(self._give_up())
        command = list(takewhile(lambda word: word != ">", words))
        done = CliRunner().invoke(main, command)
        said = (command, done.output, done.exception)
        assert bool(done.exit_code) == is_wrong, said
        if len(words) > len(command):
            (self._folder / words[-1]).write_text(done.stdout)
        printed = done.output if is_wrong else done.stdout
        for here, there in self.differs.items():
            printed = printed.replace(here, there)
        return printed

    async def _give_up(self) -> None:
        """Consume as the application, which cannot handle what it gets."""
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
            self.name_server, "kitchen", config=config, max_reconsume_times=0
        )
        reader.subscribe("orders", "*", handler)
        as_root = structs.replace(
            PATIENT,
            tls=config.tls,
            credentials=Credentials(access_key="ops", secret_key="ops-secret"),
        )
        async with reader, Admin(self.name_server, config=as_root) as admin:
            await inbox.wait_for(b"one coffee", b"two teas")
            await eventually(
                lambda: admin_dlq.count(admin, "kitchen"), lambda count: count == 2
            )

    def walk(self, skipped: Collection[str] = ()) -> None:
        """Do all that the guides show.

        Args:
            skipped: Headings below which commands are for other machines.
        """
        for page in PAGES:
            follow(page, self.run, skipped)
