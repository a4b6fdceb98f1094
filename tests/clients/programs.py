"""The clients under test: how their agents start, and what they cannot do."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import builds
from tests.clients.harness import Agent

HERE = Path(__file__).parent
JAVA = [
    *("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    # 3 s by default; who did not connect in time says that a topic has no route.
    "-Dcom.rocketmq.remoting.client.connect.timeout=30000",
]


@dataclass(frozen=True, eq=False)
class Client:
    """One client library."""

    name: str
    start: Callable[[Path], Agent]
    """Starts an agent with this home directory."""
    mark: str
    """The marker of tests that need it."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """What the library cannot do: feature, reason."""

    def require(self, feature: str) -> None:
        """Skip the running test where the library lacks a feature."""
        if feature in self.unsupported:
            pytest.skip(f"not supported by the client: {self.unsupported[feature]}")


def java(version: str, *options: str) -> Callable[[Path], Agent]:
    """How the Java agent starts: with a client version and options of the JVM."""

    def start(directory: Path) -> Agent:
        jars = builds.classpath(HERE / "java" / "pom.xml", version)
        classes = builds.java_classes(HERE / "java", jars)
        return Agent(
            [
                *JAVA,
                f"-Duser.home={directory}",
                *options,
                "-cp",
                f"{classes}:{jars}",
                "Agent",
            ],
            directory,
        )

    return start


def go(directory: Path) -> Agent:
    """Start the Go agent."""
    return Agent([str(builds.go_program(HERE / "go"))], directory)


def cpp(directory: Path) -> Agent:
    """Start the C++ agent, inside this Python."""
    return Agent([sys.executable, str(HERE / "cpp" / "agent.py")], directory)


JAVA_5 = Client("Java 5.5.0", java("5.5.0"), "jvm")
JAVA_4 = Client("Java 4.9.8", java("4.9.8"), "jvm")
GO = Client(
    "Go 2.1.2",
    go,
    "go",
    {
        "pull": "its pull consumer polls queues that a rebalance gives it",
        "query": "the library has no query",
        "offsets": "the library has no call for a queue's offsets",
    },
)
CPP = Client(
    "C++ (Python 0.4.4)",
    cpp,
    "cpp",
    {
        "from": "its C interface does not set where a group starts",
        "poll": "the library has no such consumer",
        "query": "its C interface has no query",
        "offsets": "its C interface has no call for a queue's offsets",
        "max_reconsume_times": "its C interface does not set the number of retries",
    },
)
CLIENTS = [JAVA_5, JAVA_4, GO, CPP]


def each(*clients: Client) -> pytest.MarkDecorator:
    """Run a test with each client, as its parameter `client`."""
    return pytest.mark.parametrize(
        "client",
        [
            pytest.param(
                client, marks=getattr(pytest.mark, client.mark), id=client.name
            )
            for client in clients
        ],
    )
