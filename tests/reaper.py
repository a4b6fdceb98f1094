"""Ends what a run of the tests would leave behind: its processes, and its files.

A run that ends in good order stops what it started. One that is cut off (a second
Ctrl-C, SIGTERM, a crash, a worker of pytest-xdist that dies) does not come to that. So
beside each process of pytest runs another, `reaper_process`, which outlives it.
Whatever was started carries the run's name in its environment, children of children
too: so the reaper finds it, and ends it.

What tests and their servers call temporary is in a folder of the run, and what needs a
disk in another one: the reaper removes both. That of pytest it removes where the run
was cut off; where tests failed, what is large in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from tests.reaper_process import DONE

VARIABLES = ("ROPEWAY_TEST_RUN", "ROPEWAY_TEST_WORKER")
"""Name a run in the environment of all that it starts, and a worker of a run."""
ON_DISK = "ROPEWAY_TESTS_ON_DISK"
"""Names the run's folder on a disk in the environment: TMPDIR may lie in memory."""
PROGRAM = Path(__file__).with_name("reaper_process.py")
_running: list[subprocess.Popen[bytes]] = []
_others: list[subprocess.Popen[bytes]] = []
"""Those of the process that this one is a copy of: not ours to end."""
_cut_off = pytest.StashKey[bool]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start a reaper for this process of pytest."""
    is_worker = hasattr(config, "workerinput")
    variable, name = VARIABLES[is_worker], uuid.uuid4().hex
    reaper = [sys.executable, str(PROGRAM), variable, name]
    # Its own session gets no Ctrl-C, and what has no name is not ended.
    mine = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    if not is_worker:
        folder = config._tmp_path_factory.getbasetemp()
        # Not in pytest's own folders, which other users cannot enter: tests are some.
        temporary = tempfile.mkdtemp(prefix="ropeway-tests-")
        Path(temporary).chmod(0o711)
        # Not above: pytest rewrites the assertions of plugins that nobody imported.
        from tests import jvm
        from tests.builds import cache

        cache().mkdir(parents=True, exist_ok=True)
        os.environ[ON_DISK] = tempfile.mkdtemp(prefix="ropeway-tests-", dir=cache())
        os.environ["TMPDIR"] = tempfile.tempdir = temporary
        os.environ["SPARK_LOCAL_DIRS"] = tempfile.tempdir
        # Of a driver that is killed, too.
        os.environ["SPARK_SUBMIT_OPTS"] = " ".join(jvm.options())
        given = config.option.basetemp is not None
        reaper += ["" if given else str(folder), temporary, os.environ[ON_DISK]]
    _running.append(
        subprocess.Popen(
            reaper,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=mine,
            start_new_session=True,
        )
    )
    os.environ[variable] = name


def start_for_copy(config: pytest.Config) -> None:
    """Start one for a copy of pytest's process, which has the other's by name alone."""
    for one in _running:
        assert one.stdin is not None
        one.stdin.close()
    _others.extend(_running)
    _running.clear()
    pytest_configure(config)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Note whether there is something to look at in the run's folder."""
    interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
    session.config.stash[_cut_off] = interrupted and not session.testsfailed


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say that this process ends in good order; what still runs is ended, too."""
    said = b"" if config.stash.get(_cut_off, False) else DONE
    while _running:
        _running.pop().communicate(said)


@pytest.fixture
def disk_path() -> Path:
    """A folder on a disk: a kernel tells of no other what its page cache holds."""
    return Path(tempfile.mkdtemp(dir=os.environ[ON_DISK]))
