"""A test with foreign servers or clients that fails is run once more, with new ones.

A JVM or a disk that stands still for half a minute is not what such a test looks for,
and a server that no longer answers must not fail the tests behind it, too. Tests of our
own processes alone have no second chance. What was run again is listed at the end of a
run with its first failure, and what Pulsar's threads were doing.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.distribution import end_servers
from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from collections.abc import Generator

FOREIGN = ("jvm", "go", "cpp", "server")
"""Marks of tests that are run again."""
_FAILED = pytest.StashKey[bool]()
_BUSY_WITH_NOTHING = re.compile(
    r"epollWait|Unsafe\.park.*\n.*ThreadPoolExecutor|sleep", re.IGNORECASE
)
_FRAMES = 14
_THREADS = 30


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(name) for name in FOREIGN):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "setup":
        item.stash[_FAILED] = False
    if report.failed and item.get_closest_marker("flaky"):
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


def _running(item: pytest.Item) -> list[Pulsar]:
    found: Any = item.session._fixturemanager.getfixturedefs("pulsar", item) or ()
    values = [one.cached_result[0] for one in found if one.cached_result is not None]
    return [one for one in values if isinstance(one, Pulsar)]


def threads(pulsar: Pulsar) -> str:
    """What the server's threads do that do not just wait for work."""
    command = ["jcmd", str(pulsar.pid), "Thread.print", "-l"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"not known: {error}"
    each = done.stdout.split("\n\n")
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
