"""Command lines of `ropeway serve` on pages: each of them starts a node."""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.gateway.test_tls import issue
from tests.pages import DOCS, ROOT, follow
from tests.system.process import ServerProcess, ports_in_a_row
from tests.test_page_blocks import PAGES, shown, split

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
LINES = {
    line: page
    for page in PAGES
    for _, line, _ in shown(page)
    if line.startswith("serve") and not re.search("--pulsar|--config", line)
}
"""With the page that has it last. Those on Pulsar have tests of their own."""


def serving(line: str, folder: Path) -> tuple[list[str], int]:
    """The words of a line as this machine can have them, and how many it starts."""
    words = split(line)
    count = int(words[words.index("--workers") + 1]) if "--workers" in words else 1
    first, *_ = ports_in_a_row(8)
    places = {"9876": 0, "9877": 1, "8081": 2, "8080": 4}
    text = shlex.join(words).replace("mq.example.com", "localhost")
    for port, place in places.items():
        text = text.replace(f":{port}", f":{first + place}")
    if "--listen" not in words:
        text += f" --listen 127.0.0.1:{first}"
    return [*shlex.split(text), "--ready-file", str(folder / "ready")], count


def said(folder: Path) -> str:
    """What a node says of itself so far; it writes that once it is ready."""
    file = folder / "ready"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_a_page_shows_starts_a_node(line: str, tmp_path: Path) -> None:
    if "--tls-cert" in line:
        ca = issue(tmp_path, "ca")
        issue(tmp_path, "server", ca, address="127.0.0.1")
        (tmp_path / "server.key").chmod(0o600)
    words, count = serving(line, tmp_path)
    process = ServerProcess(
        "ropeway",
        [sys.executable, "-m", "ropeway.gateway.cli.main", *words],
        tmp_path,
        {"PYTHONPATH": str(ROOT)},
    )
    listeners = max(1, words.count("--listen")) * count
    try:
        process.wait_until(lambda: said(tmp_path).count("listening on") == listeners)
    finally:
        process.stop()


def test_the_commands_of_the_page_on_running_print_what_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)

    def run(line: str) -> str:
        _, *words = shlex.split(line)
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, (line, done.output)
        return done.stdout

    with running_gateway() as gateway:
        monkeypatch.setenv("ROPEWAY_NAME_SERVER", gateway.name_server)
        follow(DOCS / "running.md", run)
