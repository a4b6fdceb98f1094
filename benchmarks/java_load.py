"""The load of real Java clients: one JVM for a whole run, so that it stays warm."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from benchmarks.load import Report
from tests import builds

if TYPE_CHECKING:
    from types import TracebackType

SOURCES = Path(__file__).resolve().parent / "java"
SILENCE_S = 120
"""Consumers have 60 s to share their queues, and as much to take the messages."""
JAVA = [
    *("java", "-Xms1g", "-Xmx1g", "-XX:+UseParallelGC"),
    # Consumers look for their share of the queues often, not each 20 s.
    "-Drocketmq.client.rebalance.waitInterval=700",
]


class JavaLoad:
    """The JVM. It starts with the first command."""

    def __init__(self) -> None:
        # The client writes its log there.
        self._home = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._home.cleanup()

    def command(self, line: str) -> None:
        """Give a command and do not wait for its end."""
        if self._process is None:
            jars = builds.classpath(SOURCES / "pom.xml")
            classes = builds.java_classes(SOURCES, jars)
            self._process = subprocess.Popen(
                [
                    *JAVA,
                    f"-Duser.home={self._home.name}",
                    *("-cp", f"{classes}:{jars}", "Load"),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line of the JVM, which must be this event.

        Raises:
            RuntimeError: the JVM ended, or said something else, or nothing for long.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        # A read of a pipe has no limit of its own.
        watch = threading.Timer(SILENCE_S, self._process.kill)
        watch.start()
        try:
            said = self._process.stdout.readline()
        finally:
            watch.cancel()
        answer: dict[str, Any] = msgspec.json.decode(said) if said else {}
        if answer.pop("event", None) != event:
            raise RuntimeError(f"the Java load said {said!r} and not {event}")
        return answer

    def report(self) -> Report:
        """Wait until what runs has ended."""
        return Report(**self.wait_for("ended"))
