"""RocketMQ's own command for administrators, mqadmin 5.5.0, in a JVM that stays."""

import subprocess
from pathlib import Path
from typing import Self

from tests import builds, jvm

HERE = Path(__file__).parent / "mqadmin"
JAVA = [
    "java",
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "-Dcom.rocketmq.remoting.client.connect.timeout=30000",
]
END = "--\n"
"""What follows each command's output."""
TIMEOUT_S = 120.0


def program(main_class: str, directory: Path) -> list[str]:
    """The command line of one of the Java programs beside mqadmin's."""
    jars = builds.classpath(HERE / "pom.xml")
    classes = builds.java_classes(HERE, jars)
    return [
        *JAVA,
        f"-Duser.home={directory}",
        f"-Drocketmq.home.dir={directory}",
        "-Drocketmq.client.logUseSlf4j=false",
        "-cp",
        f"{classes}:{jars}",
        main_class,
    ]


class MqAdmin:
    """One JVM that runs command lines; they cost a second each, and not five.

    Args:
        directory: Where it writes its logs.
    """

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            jvm.command(program("Commands", directory), shares=True),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        try:
            jvm.wait(self.process, TIMEOUT_S)
        finally:
            self.process.kill()
            jvm.wait(self.process)
            self.process.stdout.close()

    def __call__(self, line: str, name_server: str) -> str:
        """What a command prints, asking that name server."""
        self.process.stdin.write(f"{line} -n {name_server}\n")
        self.process.stdin.flush()
        printed = ""
        while (part := self.process.stdout.readline()) != END:
            assert part, printed
            printed += part
        return printed
