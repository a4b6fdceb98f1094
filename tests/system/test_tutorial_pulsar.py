"""The tutorial on Pulsar: its configuration is used, its commands are run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from tests.pages import DOCS, files, follow
from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]
PAGE = DOCS / "tutorial-pulsar.md"


def test_its_commands_print_what_stands_there(
    pulsar: Pulsar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ropeway.toml"
    shown = files(PAGE)["ropeway.toml"]
    for named, is_at in (
        ("pulsar://127.0.0.1:6650", pulsar.service_url),
        ("http://127.0.0.1:8080", pulsar.admin_url),
        ('data = "data"', f'data = "{tmp_path / "data"}"'),
    ):
        assert named in shown
        shown = shown.replace(named, is_at)
    file.write_text(shown)
    node = Ropeway(tmp_path / "node", options=["--config", str(file)])
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null")
    monkeypatch.setenv("ROPEWAY_NAME_SERVER", node.name_server)

    def run(command: str) -> str:
        program, *words = shlex.split(command.replace("ropeway.toml", str(file)))
        assert program == "ropeway"
        if not node.runs and "--only-here" not in words:
            node.start()
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, (command, done.output)
        return done.stdout

    try:
        follow(PAGE, run)
    finally:
        node.stop()
