"""The native load generators: built with gcc on first use, run, and what they say."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests import builds

HERE = Path(__file__).resolve().parent
MOST_S = 600
"""Longer than anything takes here; a load generator itself waits 20 s for an answer."""


class Report(NamedTuple):
    """What a load generator has counted."""

    messages: int
    seconds: float
    requests: int
    errors: int
    p50_us: float | None = None
    """How long a request waited for its answer; None where nobody looked."""
    p99_us: float | None = None


@cache
def program(name: str) -> Path:
    """A load generator, built where its source has changed."""
    return builds.c_program(HERE / f"{name}.c", [HERE / "remoting.h"])


class Running:
    """A load generator at work.

    Args:
        name: `load` or `wake`.
        port: of the server, on 127.0.0.1.
        words: its arguments.
    """

    def __init__(self, name: str, port: int, words: str) -> None:
        self._what = f"{name} {port} {words}"
        self._process = subprocess.Popen(
            [program(name), str(port), *words.split()],
            stdout=subprocess.PIPE,
            text=True,
        )

    def report(self) -> Report:
        """Wait for its end.

        Raises:
            RuntimeError: it failed; it has said why on stderr.
        """
        said, _ = self._process.communicate(timeout=MOST_S)
        if self._process.returncode:
            raise RuntimeError(f"{self._what} ended with {self._process.returncode}")
        return Report(**msgspec.json.decode(said))

    def stop(self) -> None:
        """End it, whatever it has counted."""
        self._process.terminate()
        self._process.communicate()


def run(name: str, port: int, words: str) -> Report:
    """Run a load generator to its end."""
    return Running(name, port, words).report()
