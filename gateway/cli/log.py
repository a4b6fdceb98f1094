"""`ropeway log`: the state of nodes' logs, and verification of one that is not open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from ropeway.client import admin_nodes
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, reported
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.brokers import LogRow
from ropeway.gateway.cli.rows.checked import CompactedFiles, LogVerified
from ropeway.gateway.node.derived_verify import verify as verify_stores
from ropeway.storage.compaction.verify import verify as verify_compacted
from ropeway.storage.file.verify import verify as verify_log

if TYPE_CHECKING:
    from ropeway.client.admin_nodes import Node
    from ropeway.gateway.cli.target import Target

_LOG = "log"
"""The log's place within a node's data directory."""
_COMPACTION = "compaction"
"""Likewise, that of compacted records."""


@click.group(epilog=example("ropeway log status"))
def log() -> None:
    """Show the state of nodes' logs, and verify one that no node has open."""


@log.command(epilog=example("ropeway log status"))
@cluster_options
@json_option(list[LogRow])
def status(cluster: Target, as_json: bool) -> None:
    """Print each node's log backend and its state."""
    nodes = ask(cluster, admin_nodes.nodes)
    print_rows([_row(node) for node in nodes], as_json=as_json)


def _row(node: Node) -> LogRow:
    found = node.status
    if found is None:
        state = node.trouble
    elif found.overdue_ms:
        state = f"has not stored for {found.overdue_ms} ms"
    else:
        state = "ok"
    return LogRow(
        broker=node.broker,
        node=node.name,
        log=found.log if found else "",
        state=state,
        overdue_ms=found.overdue_ms if found else 0,
        facts=found.log_facts if found else {},
    )


@log.command(epilog=example("ropeway log verify ./data"))
@click.argument(
    "directory", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@json_option(LogVerified)
def verify(directory: Path, as_json: bool) -> None:
    """Check every checksum of the log in DIRECTORY, a node's data directory.

    It changes nothing, and looks at the files of compacted topics, too. Damage is
    printed line by line, and the exit code is 1. Stores that will be made again from
    the log, because they are ahead of it, are printed as well.
    """
    inner = directory / _LOG
    with reported():
        ends: dict[tuple[str, int], int] = {}
        found = verify_log(inner if inner.is_dir() else directory, ends)
        stores = verify_stores(directory, ends)
        compacted = verify_compacted(directory / _COMPACTION)
    problems = found.problems + compacted.problems
    if as_json:
        print_json(
            LogVerified(
                **structs.asdict(found),
                compacted=CompactedFiles(**structs.asdict(compacted)),
                stores=stores,
            )
        )
    else:
        for line in (*problems, *stores):
            click.echo(line)
        click.echo(
            f"{found.segments} segments, {found.blocks} blocks, "
            f"{found.records} messages, {len(found.problems)} problems"
        )
        if compacted.files or compacted.problems:
            click.echo(
                f"{compacted.files} compacted files, {compacted.records} messages, "
                f"{len(compacted.problems)} problems"
            )
    if problems:
        raise CannotError(f"the log in {directory} is damaged")
