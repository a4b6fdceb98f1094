"""What the files for containers mean, as Compose, BuildKit and we read them."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ropeway.gateway.cli.serve import _settings, serve
from ropeway.gateway.config import Config
from ropeway.gateway.config_file import load
from tests import builds

ROOT = Path(__file__).parents[2]
READER = Path(__file__).parent / "compose"
NOT_SETTINGS = ["config_file", "workers", "log_level", "log_format", "ready_file"]


class RefusedError(Exception):
    """The file is not valid; the text says why."""


def understood(kind: str, file: Path, names: Sequence[str] = ()) -> Any:
    """What a file means.

    Args:
        kind: compose, dockerfile or context.
        file: the file.
        names: for context: the files that a build may get, as far as this one allows.

    Raises:
        RefusedError: it is not valid, or it is warned of.
    """
    done = subprocess.run(
        [builds.go_program(READER), kind, file],
        check=False,
        input="".join(f"{name}\n" for name in names),
        capture_output=True,
        text=True,
    )
    if done.returncode or done.stderr:
        raise RefusedError(done.stderr)
    return json.loads(done.stdout)


def node_of(arguments: Sequence[str], file: Path | None = None) -> Config:
    """The configuration of a node that is started with these arguments of `ropeway`.

    Args:
        arguments: its command line.
        file: what `--config` names is here.
    """
    command, *options = arguments
    assert command == "serve"
    given = dict(serve.make_context(command, list(options)).params)
    for name in NOT_SETTINGS:
        del given[name]
    return load(file, _settings(given))
