"""Lint, format, types and import laws, as tests: one run, one report, one last line.

`conftest.py` puts them first, so that a long run says early what a short look
would have shown.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    ["ruff check", "ruff format --check", "mypy", "lint-imports"],
)
def test_nothing_is_found_by(command: str) -> None:
    tool, *arguments = command.split()
    done = subprocess.run(
        [TOOLS / tool, *arguments],
        cwd=ROOT,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.fail(
            f"{command} (exit {done.returncode}):\n{done.stdout}", pytrace=False
        )
