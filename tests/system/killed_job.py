"""A driver of Spark that is killed, in whole or in part, and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from ropeway.client import BulkReader
from tests.ropeway.client.scenario import PATIENT
from tests.system.process import ServerProcess

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.spark_session import Topics

TIMEOUT_S = 600.0
LOOK_S = 0.3
"""How often results are counted, which takes a connection and 15 ms of CPU."""


def ended(topics: Topics, topic: str) -> int:
    """How many messages a topic has had."""

    async def ask() -> int:
        async with BulkReader(topics.name_server, "killed", config=PATIENT) as reader:
            queues = await reader.queues(topic)
            return sum([await reader.end_offset(queue) for queue in queues])

    return asyncio.run(ask())


class Job:
    """The command that runs a job; it is started again whenever it has ended.

    Args:
        folder: For its log and what Spark unpacks.
        command: Starts it.
    """

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self._folder = folder
        self._command = command
        (folder / "scratch").mkdir()
        self._process: ServerProcess | None = None
        self.starts = 0
        """How often it was started."""

    def go_on_until(self, done: Callable[[], bool]) -> None:
        """Let the job run until something is so."""
        give_up = time.monotonic() + TIMEOUT_S
        while not done():
            if time.monotonic() > give_up:
                tail = self._process.tail() if self._process else ""
                raise TimeoutError(f"the job does not go on: {tail}")
            if self._process is None or not psutil.pid_exists(self._process.pid):
                self._start()
            elif psutil.Process(self._process.pid).status() == psutil.STATUS_ZOMBIE:
                # It gave up because of what was killed; a supervisor starts it again.
                self._process.kill()
                self._start()
            time.sleep(LOOK_S)

    def _start(self) -> None:
        self.starts += 1
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = ServerProcess(
            "job",
            self._command,
            self._folder,
            {"PYTHONPATH": paths, "TMPDIR": str(self._folder / "scratch")},
        )

    def kill(self, victim: str, chance: random.Random) -> int:
        """Kill the driver with its JVM, an executor, or one of the Python processes.

        Returns:
            How many processes of the job that were; the gateway is none.
        """
        assert self._process is not None
        if victim == "gateway":
            return 0
        driver = psutil.Process(self._process.pid)
        below = driver.children(recursive=True)
        if victim in ("worker", "executor"):
            is_it = _is_worker if victim == "worker" else _is_executor
            some = [one for one in below if is_it(one)]
            chosen = [chance.choice(some)] if some else []
        else:
            # Both halves of the driver; its workers and executors see that and end.
            jvms = [one for one in below if _is_jvm(one) and not _is_executor(one)]
            chosen = [driver, *jvms]
        for one in chosen:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
        return len(chosen)

    def end(self) -> None:
        """Stop the job."""
        if self._process is None:
            return
        with suppress(psutil.NoSuchProcess):
            driver = psutil.Process(self._process.pid)
            for one in (*driver.children(recursive=True), driver):
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        self._process.kill()


def _is_jvm(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.name() == "java"
    return False


def _is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    return False


def _is_worker(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "python" in process.name() and "pyspark" in " ".join(process.cmdline())
    return False
