"""`ropeway log`: look after an embedded log that no node has open."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.clients import json_option
from gateway.cli.examples import example
from gateway.cli.failures import CannotError, reported
from gateway.cli.output import print_json
from storage.file.verify import verify as verify_log

_LOG = "log"
"""The log's place within a node's data directory."""


@click.group(epilog=example("ropeway log verify ./data"))
def log() -> None:
    """Look after an embedded log that no node has open."""


@log.command(epilog=example("ropeway log verify ./data"))
@click.argument(
    "directory", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@json_option
def verify(directory: Path, as_json: bool) -> None:
    """Check every checksum of the log in DIRECTORY, a node's data directory.

    It changes nothing. Damage is printed line by line, and the exit code is 1.
    """
    inner = directory / _LOG
    with reported():
        found = verify_log(inner if inner.is_dir() else directory)
    if as_json:
        print_json(found)
    else:
        for problem in found.problems:
            click.echo(problem)
        click.echo(
            f"{found.segments} segments, {found.blocks} blocks, "
            f"{found.records} messages, {len(found.problems)} problems"
        )
    if found.problems:
        raise CannotError(f"the log in {directory} is damaged")
