"""The soak fails where something grows, and not where caches fill and empty."""

from __future__ import annotations

import asyncio
import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 3600.0
LEAKING = """\
import runpy, sys, threading, time
kept = []
def leak():
    while True:
        kept.append((b"x" * (1 << 20) * 2, open(__file__), open(__file__)))
        time.sleep(0.25)
threading.Thread(target=leak, daemon=True).start()
del sys.argv[1:3]
runpy.run_module("ropeway.gateway.cli.main", run_name="__main__", alter_sys=True)
"""
"""A gateway that keeps 8 MiB and eight open files more each second."""


def program() -> Any:
    loader = importlib.machinery.SourceFileLoader("soak", str(ROOT / "scripts/soak"))
    spec = importlib.util.spec_from_loader("soak", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def looks(resident: Any) -> list[dict[str, float]]:
    return [
        {"s": s, "MiB resident": resident(s), "open files": 50.0, "tasks": 30.0 + s % 9}
        for s in range(10, int(SECONDS), 10)
    ]


@pytest.mark.parametrize("name", ["soak", "site", "stalls"])
def test_a_script_runs_as_its_page_shows_it(name: str) -> None:
    """In the folder of the tree, whatever Python is the first on the path."""
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    asked = [f"scripts/{name}", "--help"]
    said = subprocess.check_output(asked, cwd=ROOT, env={"PATH": path}, text=True)
    assert said.startswith("usage: ")


@pytest.mark.parametrize(
    ("resident", "wrong"),
    [
        pytest.param(lambda _: 90.0, [], id="flat"),
        pytest.param(lambda s: 90 + min(s, 600) / 10, [], id="fills in the warm-up"),
        pytest.param(lambda s: 90 + s % 400 / 10, [], id="saw teeth"),
        pytest.param(lambda s: 90 + s / 100, ["MiB resident"], id="20 MiB an hour"),
        pytest.param(
            lambda s: 90 + s / 100 + s % 400 / 10,
            ["MiB resident"],
            id="in saw teeth",
        ),
    ],
)
def test_what_grows_behind_the_warm_up_is_a_leak(resident: Any, wrong: list[str]):
    assert program().grown(looks(resident), SECONDS) == wrong


@pytest.mark.slow
def test_a_leak_that_was_planted_is_found(tmp_path: Path):
    leaking = tmp_path / "leaking.py"
    leaking.write_text(LEAKING)
    python = sys.executable, str(leaking)
    wrong = asyncio.run(program().soak(0.5, tmp_path, 20.0, python=python))
    assert wrong == ["MiB resident", "open files"]
