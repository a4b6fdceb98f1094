"""Counts of instructions: what is made of them. They are no test's business."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import instruction_cases, instructions
from tests import builds

ROOT = Path(__file__).parents[2]
DUMP = """version: 1
desc: Trigger: Client Request: {name}
events: Ir
fn=(1) poll
12 34
totals: {total}
"""


def dumped(folder: Path, *found: tuple[str, int]) -> None:
    (folder / "out").write_text("totals: 99999\n")
    for number, (name, total) in enumerate(found, 1):
        path = folder / f"out.{number}"
        path.write_text(DUMP.format(name=name, total=total))


def test_the_least_of_the_rounds_is_shared_by_their_messages(tmp_path: Path) -> None:
    dumped(
        tmp_path,
        *(("-1 a pop, done", 10), ("0 a pop, done", 700), ("0 a pop, done", 100)),
        *(("1 a pop, done", 300), ("1 a pop, done", 200), ("0 frame", 60)),
    )
    found = instructions.figures("5 a pop, done\n3 frame\n", tmp_path)
    assert found == {"a pop, done": 100.0, "frame": 20.0}


def test_what_costs_over_three_percent_more_is_named() -> None:
    before = {"a": 1000.0, "b": 1000.0, "gone": 1.0}
    after = {"a": 1029.0, "b": 1031.0, "new": 5.0}
    text, more = instructions.compared(before, after)
    assert "| new       |" in text
    assert "gone" not in text
    assert more == ["b: 1.031 of the instructions before"]


def test_the_newest_figures_of_a_python_are_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructions, "KEPT", tmp_path / "kept.toml")
    instructions.KEPT.write_text("# written by a program\n")
    assert instructions.kept() is None
    for figure in (10.4, 20.0):
        instructions.keep({"send, one a read": figure}, "abc1234")
    entry = instructions.kept()
    assert entry is not None
    assert entry["instructions"] == {"send, one a read": 20}
    assert entry["commit"] == "abc1234"


def test_the_figures_that_are_kept_are_of_cases_that_there_are() -> None:
    for entry in instructions.entries()[-1:]:
        assert set(entry["instructions"]) == set(instruction_cases.CASES)


@pytest.mark.slow
def test_every_case_is_asked_and_answered() -> None:
    library = builds.shared_object(ROOT / "benchmarks" / "counter.c")
    command = [sys.executable, "-m", "benchmarks.instruction_cases", str(library)]
    done = subprocess.run(
        [*command, "--rounds", "1"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    asked = [line.split(" ", 1)[1] for line in done.stdout.splitlines()]
    assert asked == list(instruction_cases.CASES)
