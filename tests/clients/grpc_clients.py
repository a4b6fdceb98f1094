"""RocketMQ 5's gRPC clients under test: how their agents start, what they cannot do."""

import shutil
import subprocess
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
RUST_NEEDED = [1, 88]
"""What those of the Rust client do."""


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


def rust_program() -> Path:
    """The Rust agent, which two minutes of CPU build once on a machine.

    `scripts/setup test` does that before any test has to wait for it.

    Raises:
        LookupError: There is no cargo that could.
    """
    if shutil.which("cargo") is None:
        raise LookupError("cargo is not installed")
    said = subprocess.check_output(["cargo", "--version"], text=True).split()[1]
    if [int(one) for one in said.split(".")[:2]] < RUST_NEEDED:
        raise LookupError(f"cargo is {said}")
    return builds.rust_program(HERE / "rust", "agent")


def rust(directory: Path) -> Agent:
    """Start the Rust agent."""
    try:
        return Agent([str(rust_program())], directory)
    except LookupError as error:
        pytest.skip(f"Rust 1.88 is needed, and could not be had: {error}")


JAVA_GRPC = Client("Java gRPC 5.2.0", java, "jvm")
GO_GRPC = Client("Go gRPC 5.1.3", go, "go", {"recall": "the library has no recall"})
NODE_GRPC = Client("Node.js gRPC 1.0.8", node, "slow")
PYTHON_GRPC = Client(
    "Python gRPC 5.1.2",
    python,
    "slow",
    {"tail": "it subscribes to lite topics where the group is, and nowhere else"},
)
RUST_GRPC = Client("Rust gRPC 5.0.0", rust, "slow")
"""It has no push consumer, no recall, and cannot change how long it keeps a message."""
CLIENTS = [JAVA_GRPC, NODE_GRPC, PYTHON_GRPC, GO_GRPC]

if __name__ == "__main__":
    rust_program()
