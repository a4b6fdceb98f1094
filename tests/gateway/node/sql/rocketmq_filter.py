"""RocketMQ's own classes that filter, in a JVM that is asked line by line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests import builds, jvm
from tests.clients.programs import JAVA

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent / "java"
STOP_SECONDS = 60


class RocketMqFilter:
    """One JVM; it ends when its input does."""

    def __init__(self) -> None:
        jars = builds.classpath(HERE / "pom.xml")
        classes = builds.java_classes(HERE, jars)
        self._process = subprocess.Popen(
            jvm.command([*JAVA, "-cp", f"{classes}:{jars}", "Evaluate"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def answers(
        self, expressions: Sequence[str], properties: Sequence[str]
    ) -> list[list[str] | None]:
        """What it says of each message; None for an expression that it refuses.

        Args:
            expressions: SQL92.
            properties: Those of each message, in wire form.
        """
        asked = {"expressions": expressions, "properties": properties}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            if line.startswith(b"{"):  # others are its libraries'
                return [one[1:] if one else None for one in json.loads(line)["answers"]]
        raise EOFError("the JVM has ended")

    def stop(self) -> None:
        """End it."""
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        finally:
            self._process.kill()
            self._process.stdout.close()
