"""The examples run by the commands that they show, and print what stands there."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.gateway.cli.main import main
from ropeway.testing import running_gateway
from tests.pages import Block, steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_its_commands_print_what_stands_below_them(
    example: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session is that of the whole run.
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    shown = ast.get_docstring(ast.parse(example.read_text())) or ""
    commands, _, _ = shown.partition("\n\nWithout --once")
    # Examples share names of topics.
    with running_gateway(tmp_path / "data") as gateway:
        for step in steps(Block("", "", commands, 1)):
            # Java's folder is that of the run.
            there = step.command.replace(" ./", f" {tmp_path}/")
            ropeway, *words = shlex.split(
                there.replace(" examples/", f" {ROOT}/examples/")
            )
            assert ropeway == "ropeway"
            environment = {"ROPEWAY_NAME_SERVER": gateway.name_server}
            done = CliRunner().invoke(main, words, env=environment)
            assert done.exit_code == 0, (step.command, done.output)
    # That of the last command; words of several tasks come in any order.
    assert sorted(done.stdout.splitlines()) == sorted(step.output)
    assert step.output
