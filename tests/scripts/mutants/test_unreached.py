"""Lines that no test reaches are told, each once, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.mutants import unreached
from scripts.mutants.cores import CORES

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = b"""
LIMIT = 3


def least(a, b):
    if a < b:
        return a
    return max(b - 1,
               b + 1)
"""


def test_lines_that_could_be_changed_and_are_not_reached_are_told_once():
    def told(*lines: int) -> list[str]:
        reached = {("a.py", line) for line in lines}
        return list(unreached.of_file("a.py", SOURCE, reached))

    assert told(6, 7, 8, 9) == []
    assert told(6, 8, 9) == ["a.py:7: return a"]
    assert [one.split(":")[1] for one in told()] == ["6", "7", "8", "9"]


def test_what_a_run_has_kept_is_read_again(tmp_path: Path):
    (tmp_path / "gateway" / "node").mkdir(parents=True)
    (path,) = CORES["locks"].sources
    (tmp_path / path).write_bytes(SOURCE)
    unreached.keep(tmp_path / "locks.reached", [(path, 6), (path, 7), (path, 6)])
    found = list(unreached.of_core(tmp_path, "locks", tmp_path))
    assert [one.split(":")[1] for one in found] == ["8", "9"]
