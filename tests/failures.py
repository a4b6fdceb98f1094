"""Shows with a test that failed what servers answered it, and what they logged.

A server that no longer answers must not fail the tests behind it, too: when a test with
foreign servers or clients has failed, they are stopped, and started for the next one.
"""

from __future__ import annotations

import contextlib
import gc
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.testing import Gateway
from tests import answers
from tests.clients.harness import Agent
from tests.distribution import end_servers
from tests.system.process import ForeignProcess, ServerProcess
from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

FOREIGN = ("jvm", "go", "cpp", "server")
"""Marks of tests whose servers and clients end when they fail."""
LOGGED = (Agent, ForeignProcess, Gateway, ServerProcess)
LOG_CHARACTERS = 4000
TICK_S = 0.05
"""A file's time is that of the kernel's last tick: it may lie before the clock's."""
_BEGAN = pytest.StashKey[float]()
_FAILED = pytest.StashKey[bool]()
_BUSY_WITH_NOTHING = re.compile(
    r"epollWait|Unsafe\.park.*\n.*ThreadPoolExecutor|sleep", re.IGNORECASE
)
_FRAMES = 14
_THREADS = 30


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGAN] = time.time()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        began = item.stash.get(_BEGAN, call.start)
        if lines := answers.since(began):
            report.sections.append(("what servers answered", "\n".join(lines)))
        report.sections += logs(began)
        if any(item.get_closest_marker(name) for name in FOREIGN):
            item.stash[_FAILED] = True
            for pulsar in _running(item):
                report.sections.append(("threads of Pulsar", threads(pulsar)))
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if not item.stash.get(_FAILED, False):
        return
    assert isinstance(item, pytest.Function)
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        for one in definitions:
            if one.scope == "module" and one.baseid:
                one.finish(item._request)
    end_servers(item)


def logs(began: float) -> list[tuple[str, str]]:
    """The ends of the logs that programs wrote to since a time.

    Those of all programs that this process knows, whichever fixture or test started
    them.
    """
    paths: set[Path] = set()
    for one in gc.get_objects():
        if type(one) in LOGGED:
            paths.add(one._printed if type(one) is Gateway else one.log)
    return [
        (f"log of {path.parent.name}/{path.name}", text)
        for path in sorted(paths)
        if (text := _end_of(path, began))
    ]


def _end_of(path: Path, began: float) -> str:
    """The end of a log; empty where nobody has written to it since, or it is gone."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_mtime >= began - TICK_S:
            return path.read_text(errors="replace")[-LOG_CHARACTERS:].rstrip()
    return ""


def _running(item: pytest.Item) -> list[Pulsar]:
    found: Any = item.session._fixturemanager.getfixturedefs("pulsar", item) or ()
    values = [one.cached_result[0] for one in found if one.cached_result is not None]
    return [one for one in values if isinstance(one, Pulsar)]


def is_deadlocked(pulsar: Pulsar) -> bool:
    """Whether two of the server's own threads wait for each other for ever."""
    return "Java-level deadlock" in _thread_dump(pulsar)


def _thread_dump(pulsar: Pulsar) -> str:
    command = ["jcmd", str(pulsar.pid), "Thread.print", "-l"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"not known: {error}"
    return done.stdout


def threads(pulsar: Pulsar) -> str:
    """What the server's threads do that do not just wait for work."""
    each = _thread_dump(pulsar).split("\n\n")
    told = [one for one in each if " BLOCKED " in one or "deadlock" in one.lower()]
    told += [
        one
        for one in each
        if one not in told
        and re.match(
            r'"(pulsar-io|broker-topic|bookkeeper-ml|BookKeeper|metadata)', one
        )
        and not _BUSY_WITH_NOTHING.search(one)
    ]
    return (
        "\n\n".join("\n".join(one.splitlines()[:_FRAMES]) for one in told[:_THREADS])
        or "all of them wait for work"
    )
