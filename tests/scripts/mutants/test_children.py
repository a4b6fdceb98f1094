"""Children give what they found, and leave nothing when they do not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from scripts.mutants import children
from tests.remoting import TIMEOUT_S
from tests.waiting import until


def nothing() -> None:
    pass


def test_what_a_child_found_is_given_back():
    found: list[int] = []
    outcome = children.run(
        lambda: found.append(os.getpid()), nothing, TIMEOUT_S, TIMEOUT_S, lambda: found
    )
    assert outcome.status == "done"
    assert outcome.value[0] != os.getpid()
    assert found == []


def test_a_child_that_dies_is_known():
    outcome = children.run(lambda: os._exit(3), nothing, TIMEOUT_S, TIMEOUT_S)
    assert outcome == children.Outcome("crashed")


def test_a_child_that_waits_for_ever_is_ended_with_what_it_started(tmp_path: Path):
    file = tmp_path / "pid"

    def hang() -> None:
        process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        # Whole, or not there.
        file.with_suffix(".new").write_text(str(process.pid))
        file.with_suffix(".new").rename(file)
        time.sleep(1000)

    idle = 0.2
    while not file.exists():
        # One that is given no processor seems to wait before it has begun.
        began = time.monotonic()
        outcome = children.run(hang, nothing, 1000, idle)
        assert outcome == children.Outcome("timeout")
        assert time.monotonic() - began < TIMEOUT_S
        idle *= 2
    started = int(file.read_text())
    until(lambda: not psutil.pid_exists(started))


def test_a_child_that_computes_for_ever_is_ended_when_its_time_is_up():
    def spin() -> None:
        while True:
            pass

    assert children.run(spin, nothing, 0.3, 0.2) == children.Outcome("timeout")


def test_temporary_files_of_a_child_are_in_a_folder_that_is_empty(tmp_path: Path):
    scratch = tmp_path / "s"
    scratch.mkdir()
    (scratch / "left").touch()

    def look() -> None:
        children.use_scratch(str(scratch))

    def give() -> list[str]:
        made = subprocess.run(["mktemp"], check=True, capture_output=True, text=True)
        return [made.stdout.strip(), *[one.name for one in scratch.iterdir()]]

    path, *names = children.run(look, nothing, TIMEOUT_S, TIMEOUT_S, give).value
    assert Path(path).parent == scratch / "t"
    assert names == ["t"]


def test_tests_wait_no_longer_than_they_are_told():
    def look() -> None:
        children.wait_less(TIMEOUT_S - 1)
        found.append(sys.modules["tests.remoting"].TIMEOUT_S)
        children.wait_less(TIMEOUT_S)
        found.append(sys.modules["tests.remoting"].TIMEOUT_S)

    found: list[float] = []
    outcome = children.run(look, nothing, TIMEOUT_S, TIMEOUT_S, lambda: found)
    assert outcome.value == [TIMEOUT_S - 1, TIMEOUT_S - 1]


def test_what_was_paused_goes_on():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        process.send_signal(signal.SIGSTOP)
        told = psutil.Process(process.pid)
        while told.status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        children.resume_all()
        # It ends with what it reads.
        process.communicate(timeout=TIMEOUT_S)
