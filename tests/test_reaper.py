"""What is left by a run of the tests that is cut off, and by one that is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.reaper import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
STARTED_S = 120
GONE_S = 120
PROGRAM = """
import os, subprocess, sys, tempfile, time

SERVER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SERVER!r}])"

def test_that_starts_what_nobody_stops(tmp_path):
    tempfile.mkstemp()
    (tmp_path / "its.log").write_text("ready")
    with open(tmp_path / "its.data", "wb") as file:
        file.truncate(128 << 20)
    server = subprocess.Popen(
        # As a server that has workers, and lets no Ctrl-C reach them.
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    worker = server.stdout.readline().strip()
    with open(os.environ["STARTED"] + ".new", "w") as file:
        file.write(f"{os.getpid()} {server.pid} {worker} {tmp_path}")
    os.rename(os.environ["STARTED"] + ".new", os.environ["STARTED"])
    time.sleep(float(os.environ["LASTS_S"]))
    if "FAILS" in os.environ:
        raise AssertionError("as it should")
"""


class Run:
    """A run of pytest whose one test starts a server with a worker, and stops none."""

    def __init__(self, folder: Path, *options: str, **more: str) -> None:
        self.folder = folder / "temporary"
        self.folder.mkdir()
        (folder / "pytest.ini").write_text(
            "[pytest]\ntmp_path_retention_policy = failed\n"
        )
        (folder / "test_started.py").write_text(PROGRAM)
        started = folder / "started"
        mine = {key: value for key, value in os.environ.items() if key not in VARIABLES}
        for name in [one for one in mine if one.startswith("PYTEST_")]:
            del mine[name]
        plugins = (
            *("-p", "tests.reaper", "-p", "tests.forks", "-p", "tests.starts"),
            *("-p", "no:cacheprovider"),
        )
        self.process = subprocess.Popen(
            [
                # Who runs tests in the background of a shell has them ignore it.
                *("env", "--default-signal=INT"),
                *(sys.executable, "-m", "pytest", "-q", *plugins),
                *(*options, str(folder)),
            ],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                **mine,
                "PYTHONPATH": str(ROOT),
                "TMPDIR": str(self.folder),
                "STARTED": str(started),
                "LASTS_S": "600",
                **more,
            },
        )
        wait_until(started.exists, STARTED_S)
        worker, *servers, path = started.read_text().split()
        self.pytest = int(worker)
        self.servers = [int(one) for one in servers]
        self.tmp_path = Path(path)

    def has_ended(self) -> bool:
        """Whether nothing runs any more that it started.

        A process that was killed has no environment any more, by which the reaper finds
        it, a moment before it has ended.
        """
        return not any(map(runs, self.servers))

    def left(self) -> list[Path]:
        """The files that there are, while the reaper may be removing folders."""
        return [
            path
            for folder, _, names in os.walk(self.folder)
            for name in names
            # pytest's link to its newest folder outlives what it leads to.
            if not (path := Path(folder, name)).is_symlink()
        ]


def runs(pid: int) -> bool:
    """Whether a process is there, and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start a run, which ends with the test."""
    started: list[Run] = []

    def make(*options: str, **more: str) -> Run:
        started.append(Run(tmp_path, *options, **more))
        return started[-1]

    yield make
    for run in started:
        run.process.kill()
        run.process.wait()


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_run_that_is_cut_off_leaves_no_process_and_no_file(start, number: str):
    run = start()
    run.process.send_signal(signal.Signals[number])
    run.process.wait(GONE_S)
    wait_until(run.has_ended, GONE_S)
    wait_until(lambda: not run.left(), GONE_S)


def test_the_servers_of_a_worker_that_dies_end_while_the_run_goes_on(start):
    run = start("-n", "1", "--maxfail", "1", "--max-worker-restart", "0")
    assert run.pytest != run.process.pid
    os.kill(run.pytest, signal.SIGKILL)
    wait_until(run.has_ended, GONE_S)
    assert run.process.wait(GONE_S) == pytest.ExitCode.TESTS_FAILED


def test_a_run_whose_controller_is_killed_leaves_no_worker_and_no_server(start):
    run = start("-n", "1")
    run.process.kill()
    wait_until(run.has_ended, GONE_S)
    wait_until(lambda: not runs(run.pytest), GONE_S)
    wait_until(lambda: not run.left(), GONE_S)


def test_of_a_run_that_passes_nothing_is_left(start):
    run = start(LASTS_S="0")
    assert run.process.wait(GONE_S) == 0
    wait_until(run.has_ended, GONE_S)
    assert not run.left()


def test_of_a_failed_test_its_folder_is_left_to_look_at_without_servers_data(start):
    run = start(LASTS_S="0", FAILS="1")
    assert run.process.wait(GONE_S) == pytest.ExitCode.TESTS_FAILED
    wait_until(run.has_ended, GONE_S)
    assert run.left() == [run.tmp_path / "its.log"]
