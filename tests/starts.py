"""Programs that are not ours are started again where they did not come up; tests never.

No test runs twice: what a test saw is what counts. Only the start of a foreign program,
before any test has asked it anything, is made again, and only for a cause that our own
helpers name with a `StartError`. Each is written to a file that the run prints at its
end, and a run allows three, whatever its number of processes.
"""

from __future__ import annotations

import fcntl
import functools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pluggy import HookimplMarker

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

P = ParamSpec("P")
T = TypeVar("T")

# As pytest's own; programs that tests start are spared the import of pytest.
hookimpl = HookimplMarker("pytest")

LIMIT = 3
"""How many starts a run makes again."""
FILE = "ROPEWAY_STARTED_AGAIN"
"""The environment variable with the file's name, which all processes of a run share."""


class StartError(Exception):
    """A program that is not ours did not start; the subclass is the cause."""


class StartTimeoutError(StartError):
    """It was not ready within its time: the machine is too busy, or stands still."""


class StartEndedError(StartError):
    """It ended before it was ready."""


class DownloadError(StartError):
    """What it consists of could not be downloaded or built by its own tool."""


def started_again(start: Callable[P, T]) -> Callable[P, T]:
    """Call a function again when it raises a `StartError`, as often as a run allows.

    What the function has started by then is its own to end.
    """

    @functools.wraps(start)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return start(*args, **kwargs)
            except StartError as error:
                if not _is_allowed(error):
                    raise

    return run


def _is_allowed(error: StartError) -> bool:
    """Count a start that failed; outside of a run, none is made again."""
    file = os.environ.get(FILE)
    if file is None:
        return False
    test = os.environ.get("PYTEST_CURRENT_TEST", "no test")
    what, _, more = str(error).partition("\n")
    last = more.strip().rpartition("\n")[2]
    with Path(file).open("a+") as counted:
        fcntl.flock(counted, fcntl.LOCK_EX)
        counted.write(f"{type(error).__name__}: {what} [{test}] {last}\n")
        counted.flush()
        counted.seek(0)
        is_allowed = len(counted.readlines()) <= LIMIT
    if not is_allowed:
        error.add_note(f"a run makes {LIMIT} starts again, and no more")
    return is_allowed


def _lines() -> list[str]:
    return Path(os.environ[FILE]).read_text().splitlines()


@hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Behind `reaper`, which says where files of the run are."""
    if not hasattr(config, "workerinput"):
        handle, name = tempfile.mkstemp(prefix="ropeway-starts-")
        os.close(handle)
        os.environ[FILE] = name


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        Path(os.environ.pop(FILE)).unlink()


def pytest_sessionfinish(session: pytest.Session) -> None:
    # A test may have taken the error for its own.
    if not hasattr(session.config, "workerinput") and len(_lines()) > LIMIT:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if lines := _lines():
        title = f"{len(lines)} foreign starts failed; {LIMIT} are made again"
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line(line)
