"""Lint, format, types and import laws, as tests: one run, one report, one last line.

They come first, so that a long run says early what a short look would have shown. What
the tools found before is kept beside downloads: they look at what has changed, also in
another clone.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import builds

ROOT = Path(__file__).parents[1]
TOOLS = Path(sys.executable).parent
CHECKS = builds.cache() / "checks"
CACHES = {
    "MYPY_CACHE_DIR": str(CHECKS / "mypy"),
    "RUFF_CACHE_DIR": str(CHECKS / "ruff"),
}
"""Where the tools of this name keep what they know."""


@pytest.mark.parametrize(
    "command",
    [
        *("mypy", "ruff check", "ruff format --check"),
        f"lint-imports --cache-dir {CHECKS / 'imports'}",
    ],
    ids=lambda command: command.partition(" --cache-dir")[0],
)
def test_nothing_is_found_by(command: str) -> None:
    tool, *arguments = command.split()
    done = subprocess.run(
        [TOOLS / tool, *arguments],
        cwd=ROOT,
        env={**os.environ, **CACHES},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.fail(
            f"{command} (exit {done.returncode}):\n{done.stdout}", pytrace=False
        )
