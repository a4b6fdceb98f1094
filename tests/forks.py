"""Collects tests once, and forks the processes that run them.

pytest-xdist starts Pythons, each of which imports all tests and makes items of them:
5 s of CPU, 8 beside others. Here its own process does so, and the others are copies of
it. One that takes the place of another that has crashed is started as xdist does.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

CONTROLLERS = ("dsession", "terminaldistreporter", "terminalreporter", "compatibility")
"""Plugins of the process that gives out the work, by name."""


class Fork:
    """A copy of this process that waits for work, where xdist wants one to start."""

    def __init__(self, session: pytest.Session, inherited: list[int]) -> None:
        """Fork.

        Args:
            session: What there is to run.
            inherited: The ends of pipes that belong to this process alone.
        """
        (asked, ask), (answers, answer) = os.pipe(), os.pipe()
        inherited += (ask, answers)
        self.pid = os.fork()
        if not self.pid:
            for one in inherited:
                os.close(one)
            _copied.append(session)
            _serve(asked, answer)
        os.close(asked)
        os.close(answer)
        self.stdin, self.stdout = os.fdopen(ask, "wb"), os.fdopen(answers, "rb")

    def wait(self) -> int:
        """Wait for its end."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)


_copied: list[pytest.Session] = []
"""In a copy: what it runs tests of."""
_waiting: list[Fork] = []
"""Copies that xdist has not asked for yet."""


def _serve(asked: int, answer: int) -> None:
    """Do what execnet has a Python do that it starts, and end."""
    status = 1
    try:
        os.dup2(asked, 0)
        os.dup2(answer, 1)
        os.close(asked)
        os.close(answer)
        sys.stdin, sys.stdout = sys.__stdin__, sys.__stdout__
        sys.stderr = sys.__stderr__
        line = b""
        while not line.endswith(b"\n"):
            one = os.read(0, 1)
            if not one:
                return  # whoever forked it has ended
            line += one
        exec(eval(line), {"__name__": "__main__"})
        status = 0
    finally:
        os._exit(status)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Collect, and fork as many processes as xdist is about to start."""
    from execnet import gateway_io

    session = config.pluginmanager.getplugin("session")
    assert isinstance(session, pytest.Session)
    controller = config.pluginmanager.getplugin("dsession")
    collect = config.pluginmanager.subset_hook_caller("pytest_collection", [controller])
    collect(session=session)
    if session.testsfailed:
        specs.clear()
        return
    # Of threads, a copy has the one that forks alone.
    assert threading.active_count() == 1, threading.enumerate()
    inherited: list[int] = []
    _waiting.extend(Fork(session, inherited) for _ in specs)
    create_io = gateway_io.create_io

    def create(spec: Any, execmodel: Any) -> Any:
        if not _waiting:
            return create_io(spec, execmodel)
        io = object.__new__(gateway_io.Popen2IOMaster)
        io.popen = _waiting.pop(0)
        gateway_io.Popen2IO.__init__(io, io.popen.stdin, io.popen.stdout, execmodel)
        return io

    gateway_io.create_io = create


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Run nothing where something could not be collected, as in one process."""
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_getremotemodule() -> str:
    """Python that xdist has each process run: a copy its own, and others xdist's."""
    from xdist import remote

    source = inspect.getsource(remote)
    name = __name__
    return f"""
import sys
if {name!r} in sys.modules:
    sys.modules[{name!r}].work(channel)
else:
    exec({source!r})
"""


def work(channel: Any) -> None:
    """Run the tests that xdist asks a copy for, as `xdist.remote` does elsewhere."""
    from xdist import remote

    # Not above: pytest rewrites the assertions of plugins that nobody imported.
    from tests import reaper

    (session,) = _copied
    config: Any = session.config
    config.workerinput, _, options, _ = channel.receive()
    config.workeroutput = {}
    os.environ["PYTEST_XDIST_TESTRUNUID"] = config.workerinput["testrunuid"]
    os.environ["PYTEST_XDIST_WORKER"] = config.workerinput["workerid"]
    os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(config.workerinput["workercount"])
    for plugin in map(config.pluginmanager.getplugin, CONTROLLERS):
        if plugin is not None:
            config.pluginmanager.unregister(plugin)
    remote.setup_config(config, options["basetemp"])
    config._tmp_path_factory._given_basetemp = Path(options["basetemp"])
    config._tmp_path_factory._basetemp = None
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    reaper.start_for_copy(config)
    remote.interactor = interactor = remote.WorkerInteractor(config, channel)
    interactor.pytest_sessionstart(session)
    interactor.pytest_collection()
    config.hook.pytest_collection_finish(session=session)
    _run(session)


def _run(session: pytest.Session) -> None:
    """Do what is behind the collection in pytest's own `wrap_session`."""
    config, status = session.config, pytest.ExitCode.INTERNAL_ERROR
    try:
        config.hook.pytest_runtestloop(session=session)
        status = pytest.ExitCode(bool(session.testsfailed))
    except (KeyboardInterrupt, pytest.exit.Exception):
        status = pytest.ExitCode.INTERRUPTED
        found = pytest.ExceptionInfo.from_current()
        config.hook.pytest_keyboard_interrupt(excinfo=found)
    except BaseException:  # noqa: BLE001 - as pytest does: xdist is told
        config.notify_exception(pytest.ExceptionInfo.from_current(), config.option)
    finally:
        os.chdir(session.startpath)
        config.hook.pytest_sessionfinish(session=session, exitstatus=status)
        config._ensure_unconfigure()
