"""RocketMQ 5's gRPC clients under test: how their agents start, what they cannot do."""

import sys
from pathlib import Path

import pytest

from tests import builds
from tests.clients.harness import Agent
from tests.clients.programs import JAVA, Client
from tests.starts import DownloadError

HERE = Path(__file__).parent / "grpc"
GO_NEEDED = "1.25.5"
"""What the Go client's own dependencies want."""


def java(directory: Path) -> Agent:
    """Start the Java agent."""
    jars = builds.classpath(HERE / "java" / "pom.xml")
    classes = builds.java_classes(HERE / "java", jars)
    return Agent(
        [*JAVA, f"-Duser.home={directory}", "-cp", f"{classes}:{jars}", "Agent"],
        directory,
    )


def go(directory: Path) -> Agent:
    """Start the Go agent."""
    environment = {"user.home": str(directory)}
    try:
        newer = builds.go_of(GO_NEEDED)
    except (LookupError, DownloadError) as error:
        pytest.skip(f"Go {GO_NEEDED} is needed, and could not be had: {error}")
    program = builds.go_program(HERE / "go", newer)
    return Agent([str(program)], directory, environment)


def node(directory: Path) -> Agent:
    """Start the Node.js agent."""
    modules = builds.node_modules(HERE / "node")
    environment = {"NODE_PATH": str(modules)}
    return Agent(["node", str(HERE / "node" / "agent.js")], directory, environment)


def python(directory: Path) -> Agent:
    """Start the Python agent, with the client's packages before this Python's own."""
    packages = builds.python_packages(HERE / "python" / "requirements.txt")
    environment = {"PYTHONPATH": str(packages)}
    agent = str(HERE / "python" / "agent.py")
    return Agent([sys.executable, agent], directory, environment)


JAVA_GRPC = Client("Java gRPC 5.2.0", java, "jvm")
GO_GRPC = Client("Go gRPC 5.1.3", go, "go", {"recall": "the library has no recall"})
NODE_GRPC = Client("Node.js gRPC 1.0.8", node, "slow")
PYTHON_GRPC = Client(
    "Python gRPC 5.1.2",
    python,
    "slow",
    {"tail": "it subscribes to lite topics where the group is, and nowhere else"},
)
CLIENTS = [JAVA_GRPC, NODE_GRPC, PYTHON_GRPC, GO_GRPC]
