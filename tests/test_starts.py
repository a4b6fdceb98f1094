"""Foreign programs are started again for named causes, and no test is run twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.starts import LIMIT, StartEndedError, StartTimeoutError
from tests.system.process import ForeignProcess, ServerProcess

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
FOREIGN = """
import pytest
from pathlib import Path
from tests.starts import StartTimeoutError, started_again

TRIES = Path(__file__).with_name("tries")

@started_again
def start(name, failures):
    with TRIES.open("a") as tries:
        tries.write(name + "\\n")
    if TRIES.read_text().split().count(name) <= failures:
        raise StartTimeoutError(f"{name} did not start in 5 s:\\nthe end of its log")
    return name
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A place for tests that run with nothing but the plugin and two processes."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("ROPEWAY_STARTED_AGAIN", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\naddopts = -p xdist -p tests.starts -p no:cacheprovider")
    return pytester


def test_a_named_cause_is_counted_and_a_failed_assertion_is_final(
    run: pytest.Pytester,
) -> None:
    run.makepyfile(
        FOREIGN
        + """
@pytest.fixture
def server():
    return start("pulsar", 1)

def test_gets_its_server(server):
    assert server == "pulsar"

def test_starts_one_itself():
    assert start("broker", 1) == "broker"

def test_fails():
    with TRIES.open("a") as tries:
        tries.write("asserted\\n")
    assert TRIES.read_text() == ""
"""
    )
    done = run.runpytest_inprocess()
    done.assert_outcomes(passed=2, failed=1)
    assert done.ret == 1
    tries = (run.path / "tries").read_text().split()
    assert sorted(tries) == ["asserted", "broker", "broker", "pulsar", "pulsar"]
    done.stdout.fnmatch_lines(
        [
            "*2 foreign starts failed; 3 are made again*",
            "*: pulsar did not start in 5 s: *server (setup)* the end of its log",
            "StartTimeoutError: broker did not start in 5 s: *itself (call)*",
        ]
    )


def test_a_run_makes_three_starts_again_in_all_its_processes(
    run: pytest.Pytester,
) -> None:
    run.makepyfile(
        FOREIGN
        + """
@pytest.mark.parametrize("name", [f"server-{number}" for number in range(4)])
def test_starts(name):
    start(name, 1)
"""
    )
    done = run.runpytest_subprocess("-n", "2")
    done.assert_outcomes(passed=LIMIT, failed=1)
    done.stdout.fnmatch_lines(["*a run makes 3 starts again, and no more*"])
    assert (run.path / "tries").read_text().count("server") == 2 * LIMIT + 1


def test_a_run_with_too_many_fails_whoever_took_the_error(run: pytest.Pytester) -> None:
    run.makepyfile(
        FOREIGN
        + """
def test_takes_what_is_not_its_own():
    with pytest.raises(StartTimeoutError):
        start("pulsar", 9)
"""
    )
    done = run.runpytest_inprocess()
    done.assert_outcomes(passed=1)
    assert done.ret == 1


def test_without_a_run_nothing_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROPEWAY_STARTED_AGAIN", raising=False)
    names: dict[str, object] = {"__file__": str(tmp_path / "test_it.py")}
    exec(FOREIGN, names)
    with pytest.raises(StartTimeoutError):
        names["start"]("pulsar", 1)
    assert (tmp_path / "tries").read_text() == "pulsar\n"


def test_only_what_is_not_ours_names_a_cause(tmp_path: Path) -> None:
    ends = [sys.executable, "-S", "-c", "print('port 1 in use')"]
    waits = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    with pytest.raises(StartEndedError, match="in use"):
        ForeignProcess("theirs", ends, tmp_path).wait_until(lambda: False)
    with pytest.raises(StartTimeoutError, match=r"theirs did not start in 0\.1 s"):
        ForeignProcess("theirs", waits, tmp_path).wait_until(lambda: False, 0.1)
    with pytest.raises(RuntimeError, match="ours ended as it started"):
        ServerProcess("ours", ends, tmp_path).wait_until(lambda: False)
    with pytest.raises(RuntimeError, match=r"ours did not start in 0\.1 s"):
        ServerProcess("ours", waits, tmp_path).wait_until(lambda: False, 0.1)
