"""A run in a copy of the tree finds what tests notice and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.test_laws import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def run(tmp_path: Path, *arguments: str) -> str:
    """Run the driver, with its temporary files in a folder of the test's."""
    (tmp_path / "t").mkdir(exist_ok=True)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "scripts.mutants",
            "--state",
            tmp_path / "s",
            *arguments,
        ],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path / "t")},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_mutants_of_locks_are_killed_and_asked_for_once(tmp_path: Path):
    results = tmp_path / "s/results.jsonl"
    before = (ROOT / "gateway/node/locks.py").read_bytes()
    assert "| locks | 4 | " in run(tmp_path, "run", "4", "locks", "--jobs", "1")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    killed = [one for one in rows if one["status"] == "killed"]
    assert len(rows) == 4
    assert len(killed) >= 3
    for one in killed:
        assert one["by"].startswith("tests/gateway/node/test_locks.py::test_")
    # It goes on where it was: four are known, two are asked for.
    assert "| locks | 6 | " in run(tmp_path, "run", "6", "locks", "--jobs", "1")
    assert len(results.read_text().splitlines()) == 6
    assert "| locks | 6 | " in run(tmp_path, "table")
    assert (ROOT / "gateway/node/locks.py").read_bytes() == before
    assert list((tmp_path / "t" / "mutants").iterdir()) == []
