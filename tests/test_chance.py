"""Order and fresh examples come from a run's seed; fixed examples from none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chance import TIERS

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
TESTS = """
import os
import pytest
from hypothesis import given, strategies as st
from tests.chance import fixed_and_fresh
from tests.starts import Path

def note(*words):
    with Path(os.environ["NOTES"]).open("a") as notes:
        notes.write(" ".join(map(str, words)) + "\\n")

@pytest.mark.parametrize("number", range(20))
def test_order(number):
    note("order", number)

@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_slow(number):
    note("slow", number)

@given(st.integers())
def test_property(number):
    note("example", number)

@fixed_and_fresh
def test_fuzzer(seed):
    note("fuzzer", seed)
"""


@pytest.fixture
def run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, list[str]]]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    plugins = "-p xdist -p tests.chance -p tests.distribution -p no:cacheprovider"
    pytester.makeini(f"[pytest]\naddopts = {plugins}\nmarkers = slow")
    pytester.makepyfile(TESTS)

    def go(seed: str | None, *options: str) -> dict[str, list[str]]:
        notes = pytester.path / "notes"
        notes.write_text("")
        monkeypatch.setenv("NOTES", str(notes))
        monkeypatch.delenv("ROPEWAY_SEED", raising=False)
        if seed is not None:
            monkeypatch.setenv("ROPEWAY_SEED", seed)
        done = pytester.runpytest_subprocess(*options)
        found: dict[str, list[str]] = {
            "seed": re.findall(r"ROPEWAY_SEED=(\d+) repeats", done.stdout.str()),
            "error": done.errlines,
        }
        for line in notes.read_text().splitlines():
            kind, word = line.split()
            found.setdefault(kind, []).append(word)
        return found

    return go


@pytest.mark.slow
def test_a_seed_repeats_a_run_and_another_seed_is_another_run(
    run: Callable[..., dict[str, list[str]]],
) -> None:
    fresh = run(None, "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder")
    again = run(fresh["seed"][0])
    other = run("7")
    assert fresh == again
    assert sorted(fresh["order"]) == sorted(other["order"])
    assert fresh["order"] != other["order"]
    assert fresh["slow"] == other["slow"] == ["0", "1", "2", "3", "4"]
    assert fresh["fuzzer"] != other["fuzzer"]
    assert sorted(other["fuzzer"]) == ["20", "7"]
    examples, others = fresh["example"], other["example"]
    assert len(examples) >= 100
    # Hypothesis begins with small ones; what it fixed comes last.
    assert examples[-50:] == others[-50:]
    assert examples[:50] != others[:50]


def test_what_is_no_seed_is_refused(run: Callable[..., dict[str, list[str]]]) -> None:
    (error, *_) = [line for line in run("-1")["error"] if line]
    assert error == "ERROR: ROPEWAY_SEED is '-1'; allowed: 0 to 4294967295"


def test_the_quick_tier_leaves_out_each_tier() -> None:
    said = re.search(r'-m "(not [^"]+)"', (ROOT / "test").read_text())
    assert said is not None
    assert said[1] == " and ".join(f"not {one}" for one in TIERS)
