"""A running gateway, and the command in this process as its client."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli.main import main
from ropeway.testing import Gateway
from tests.gateway.cli.printed import valid
from tests.patience import have_patient_commands

Run = Callable[..., Result]


@pytest.fixture(autouse=True, scope="module")
def patient() -> Iterator[None]:
    """Have commands wait for longer than a busy machine stands still."""
    with pytest.MonkeyPatch.context() as patch:
        have_patient_commands(patch)
        yield


@pytest.fixture(autouse=True)
def contexts(tmp_path_factory, monkeypatch) -> Path:
    """The file with contexts, which is not that of who runs the tests."""
    folder = tmp_path_factory.mktemp("xdg")
    for name in [name for name in os.environ if name.startswith("ROPEWAY_TLS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return folder / "ropeway" / "contexts.json"


@pytest.fixture
def run(ropeway_gateway: Gateway) -> Run:
    """Run `ropeway` with arguments; the gateway is in the environment."""

    def invoke(*args: str, code: int | None = 0, stdin: bytes | None = None) -> Result:
        result = CliRunner().invoke(
            main,
            args,
            input=stdin,
            env={"ROPEWAY_NAME_SERVER": ropeway_gateway.name_server},
        )
        if code is not None:
            assert result.exit_code == code, (result.output, result.exception)
        if "--json" in args and not result.exit_code:
            valid(args, result.stdout)
        return result

    return invoke


def objects(result: Result) -> list[dict]:
    """The JSON lines that a command printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]
