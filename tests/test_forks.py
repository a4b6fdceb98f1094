"""Processes of xdist that are copies of the one that has collected the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TESTS = """
import os
from pathlib import Path

import pytest

def note(kind, word):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{kind} {word}\\n")

note("imported", os.getpid())

@pytest.fixture(scope="session", autouse=True)
def session():
    note("began", os.getpid())
    yield
    note("ended", os.getpid())

@pytest.mark.parametrize("at", range(4))
def test_passes(at, tmp_path):
    print("not to be seen")
    note("folder", tmp_path)
    note("ran", os.getpid())
"""
FAILS = """
def test_fails():
    print("to be seen")
    assert [1] == [2]
"""
CRASHES = """
import os

def test_crashes():
    os._exit(3)

def test_is_run_by_another():
    pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A place for tests that run with nothing but the plugins and two processes."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("NOTES", str(pytester.path / "notes"))
    plugins = "-p xdist -p tests.reaper -p tests.forks -p no:cacheprovider"
    pytester.makeini(f"[pytest]\naddopts = {plugins} -n 2 --dist loadfile")
    return pytester


def test_tests_are_imported_once_and_run_in_as_many_processes_as_asked_for(
    run: pytest.Pytester,
) -> None:
    run.makepyfile(test_one=TESTS, test_two=TESTS, test_three=FAILS)
    done = run.runpytest_subprocess()
    done.assert_outcomes(passed=8, failed=1)
    done.stdout.fnmatch_lines(["*assert [[]1[]] == [[]2[]]*", "*to be seen*"])
    done.stdout.no_fnmatch_line("*not to be seen*")
    notes: dict[str, list[str]] = {}
    for line in (run.path / "notes").read_text().splitlines():
        kind, word = line.split()
        notes.setdefault(kind, []).append(word)
    assert len(notes["imported"]) == 2
    assert len(set(notes["imported"])) == 1
    assert not {*notes["imported"]} & {*notes["ran"]}
    # A file each.
    assert sorted(map(notes["ran"].count, {*notes["ran"]})) == [4, 4]
    assert sorted({*notes["began"]}) == sorted({*notes["ended"]})
    assert {*notes["ran"]} <= {*notes["ended"]}
    assert len({Path(one).parent.name for one in notes["folder"]}) == 2


def test_one_that_crashes_is_replaced(run: pytest.Pytester) -> None:
    run.makepyfile(test_one=CRASHES, test_two=FAILS)
    # By files, xdist runs again and again what crashes.
    done = run.runpytest_subprocess("--dist", "load")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*crashed while running*test_crashes*"])


def test_what_cannot_be_imported_is_told_and_nothing_is_run(
    run: pytest.Pytester,
) -> None:
    run.makepyfile(test_one="import not_there", test_two=FAILS)
    done = run.runpytest_subprocess()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*No module named 'not_there'*"])
    assert done.ret != 0


def test_a_run_ends_with_the_first_failure_where_it_is_to(run: pytest.Pytester) -> None:
    run.makepyfile(test_one=FAILS + FAILS.replace("fails", "comes_too_late"))
    done = run.runpytest_subprocess("-x")
    done.assert_outcomes(failed=1)
    assert done.ret == pytest.ExitCode.INTERRUPTED
