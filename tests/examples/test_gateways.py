"""A test in Go and one in Node.js start a gateway, by the helpers in examples/."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from ropeway.testing import running_gateway
from tests import builds
from tests.pages import files

ROOT = Path(__file__).parents[2]
RUN_SECONDS = 540
COMMAND = str(Path(sysconfig.get_path("scripts")) / "ropeway")


def run(command: list[str], folder: Path, **environment: str) -> str:
    """What a test runner prints; it must find no failure."""
    done = subprocess.run(
        command,
        cwd=folder,
        check=False,
        env={**os.environ, "ROPEWAY_COMMAND": COMMAND, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.go
def test_a_go_test_starts_a_gateway_and_leaves_nothing(tmp_path: Path) -> None:
    said = run(
        ["go", "test", *builds.GO_FLAGS, "-count=1", "-v", "."],
        ROOT / "examples" / "go",
        TMPDIR=str(tmp_path),
    )
    assert "--- PASS: TestAnOrderThatIsSentIsReceived" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_node_test_starts_a_gateway_and_leaves_nothing(tmp_path: Path) -> None:
    modules = builds.node_modules(ROOT / "tests" / "clients" / "grpc" / "node")
    home = tmp_path / "home"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    shutil.copytree(ROOT / "examples" / "node", home)
    said = run(
        ["node", "--test"],
        home,
        NODE_PATH=str(modules),
        HOME=str(home),
        TMPDIR=str(temporary),
    )
    assert "# pass 2\n" in said
    assert not list(temporary.iterdir())


@pytest.mark.go
def test_the_program_of_the_tutorial_prints_what_stands_there(tmp_path: Path) -> None:
    shown = files(ROOT / "docs" / "tutorial-go.md")
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "examples" / "go" / name, tmp_path)
    with running_gateway() as gateway:
        asked = ["topic", "create", "orders", "-n", gateway.name_server]
        run([COMMAND, *asked], tmp_path)
        program = shown["main.go"].replace("127.0.0.1:9876", gateway.name_server)
        (tmp_path / "main.go").write_text(program)
        assert run(["go", "run", *builds.GO_FLAGS, "."], tmp_path) == shown["output"]
