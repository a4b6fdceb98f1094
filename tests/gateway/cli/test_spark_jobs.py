"""What goes wrong with Spark is one line, and Ctrl-C none."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from threading import Event

import pytest

from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.spark_jobs import (
    finish,
    interrupts,
    reason,
    spark_needed,
)

LONG = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted
Traceback (most recent call last):
  File "records.py", line 1, in run
ropeway.streams.records.StepError: step 'a' failed at 'x': ValueError: no

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)
"""


def test_the_line_that_says_why_is_found():
    assert reason(LONG) == "StepError: step 'a' failed at 'x': ValueError: no"
    assert reason("[PATH_NOT_FOUND] no such path\nat org...") == (
        "[PATH_NOT_FOUND] no such path"
    )


def test_without_pyspark_it_says_what_to_install():
    refused = pytest.raises(CannotError, match=r"pip install 'ropeway\[spark\]'")
    with refused, spark_needed():
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
    with pytest.raises(ModuleNotFoundError), spark_needed():
        raise ModuleNotFoundError("No module named 'mine'", name="mine")


@contextmanager
def noting(seen):
    seen.append("told")
    try:
        yield
    finally:
        seen.append("told no more")


def test_it_waits_until_all_have_ended_and_tells_of_them_meanwhile():
    def wait(_seconds):
        seen.append("waited")
        return len(seen) > 2

    seen = []
    finish(wait, list, is_watched=True, told=noting(seen))
    assert seen == ["told", "waited", "waited", "told no more"]


def test_ctrl_c_ends_a_wait_between_two_looks():
    def wait(_seconds):
        os.kill(os.getpid(), signal.SIGINT)
        seen.append("asked whole")
        return False

    seen = []
    with pytest.raises(KeyboardInterrupt):
        finish(wait, list, is_watched=True, told=noting(seen))
    assert seen == ["told", "asked whole", "told no more"]


def test_ctrl_c_is_acted_on_beside_what_it_interrupts():
    acted = Event()
    before = signal.getsignal(signal.SIGINT)
    with interrupts(acted.set) as came:
        os.kill(os.getpid(), signal.SIGINT)
        assert acted.wait(60)
        assert came.is_set()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_ends_the_process():
    code = """
import os, signal
from ropeway.gateway.cli.spark_jobs import interrupts
with interrupts():
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        print("once")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""
