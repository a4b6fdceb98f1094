"""Runs of the simulator: in a process of its own, since it replaces time itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import chance

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 500
LOGS = ("embedded", "pulsar")
FRESH = 5
"""Seeds of each log that no run has tried before: some 20 s of a core."""
FIRST_FRESH = 1_000_000


def simulated(*options: object) -> str:
    """What the simulator prints; it fails where something did not hold."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *map(str, options)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def checksum(said: str) -> str:
    """Of a run's trace; what is said behind it are Python's last words, with a time."""
    return said.rpartition("checksum ")[2].split()[0]


@pytest.mark.parametrize("log", LOGS)
def test_what_has_to_hold_holds_and_the_same_seeds_do_the_same(log: str) -> None:
    first = simulated("--log", log, "--first", 0, "--count", 1)
    again = simulated("--log", log, "--first", 0, "--count", 1)
    assert "1 seeds from 0, 0 failed" in first
    assert checksum(first) == checksum(again) != ""


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
def test_what_has_to_hold_holds_on_fresh_seeds(log: str) -> None:
    """The run's own seed repeats them; each that fails is printed with a command."""
    first = FIRST_FRESH + chance.seed()
    assert f"{FRESH} seeds from {first}, 0 failed" in simulated(
        "--log", log, "--first", first, "--count", FRESH
    )


@pytest.mark.slow
@pytest.mark.parametrize(("log", "count"), [("embedded", 30), ("pulsar", 15)])
def test_what_has_to_hold_holds_on_many_seeds(log: str, count: int) -> None:
    done = simulated("--log", log, "--first", 100, "--count", count)
    assert f"{count} seeds from 100, 0 failed" in done
