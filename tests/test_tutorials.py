"""Tutorials: their commands run one after the other, and print what stands there."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.pages import DOCS, files, follow

pytestmark = pytest.mark.slow
TUTORIALS = ["tutorial-go.md", "tutorial-operator.md", "tutorial-spring.md"]
"""Those whose commands need nothing but a gateway."""


def ropeway(*words: str) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (words, done.output)
    return done.stdout


@pytest.fixture
def name_server(monkeypatch):
    """A gateway, which commands find."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null")
    with running_gateway() as gateway:
        monkeypatch.setenv("ROPEWAY_NAME_SERVER", gateway.name_server)
        yield gateway.name_server


@pytest.mark.parametrize("page", TUTORIALS)
def test_the_commands_of_a_tutorial_print_what_stands_there(page, name_server):
    def run(command: str) -> str:
        program, *words = shlex.split(command)
        assert program == "ropeway"
        return ropeway(*words)

    follow(DOCS / page, run)


def test_the_programs_of_the_python_tutorial_do_what_stands_there(
    name_server, tmp_path
):
    page = DOCS / "tutorial-python.md"
    for name, text in files(page).items():
        (tmp_path / name).write_text(text.replace("127.0.0.1:9876", name_server))
    # Not what this run has told its own pytest.
    apart = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}

    def run(command: str) -> str:
        program, *words = shlex.split(command)
        if program == "ropeway":
            return ropeway(*words)
        assert program == "python"
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=apart,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    follow(page, run)
