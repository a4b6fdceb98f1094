"""`ropeway migrate`: from a running cluster of RocketMQ, or of Ropeway, to another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ropeway.client import Admin, admin_doctor, admin_inventory
from ropeway.gateway.cli import migration_checks, migration_file, migration_plan
from ropeway.gateway.cli import migration_rows as rows
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import context_names
from ropeway.gateway.cli.cut_over import cut_over
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import (
    CannotError,
    MisusedError,
    UnreachableError,
    UnwellError,
)
from ropeway.gateway.cli.migration_finish import finish
from ropeway.gateway.cli.migration_status import status
from ropeway.gateway.cli.mirror_checks import verify
from ropeway.gateway.cli.mirrors import mirror
from ropeway.gateway.cli.output import print_json, progress
from ropeway.gateway.cli.rollback import rollback
from ropeway.gateway.cli.rows.migration import MigrationPlan
from ropeway.gateway.cli.target import of_context

if TYPE_CHECKING:
    from ropeway.client.admin_doctor import Check
    from ropeway.client.admin_inventory import Inventory
    from ropeway.gateway.cli.target import Target

_PLAN = "ropeway migrate plan --source rocketmq > plan.yaml"


@click.group(epilog=example(_PLAN))
def migrate() -> None:
    """Move from a running cluster of RocketMQ: a plan, mirrors, cut-overs."""


migrate.add_command(mirror)
migrate.add_command(verify)
migrate.add_command(cut_over)
migrate.add_command(status)
migrate.add_command(finish)
migrate.add_command(rollback)


@migrate.command(epilog=example(_PLAN, "ropeway migrate plan --source rocketmq --json"))
@click.option(
    "--source",
    required=True,
    metavar="CONTEXT",
    shell_complete=context_names,
    help="The cluster to move from: a context of `ropeway context add`.",
)
@cluster_options
@json_option(MigrationPlan)
def plan(source: str, cluster: Target, as_json: bool) -> None:
    """Print what a source holds, and what would move: a file for `ropeway apply`.

    It changes nothing, at the source or here. The exit code is 4 where something does
    not move; the file says what, and why.
    """
    from_ = of_context(source)
    target, found = ask(cluster, _target)
    held = _held(source, from_)
    if misuse := migration_checks.misuse(held, target):
        raise MisusedError(f"{misuse}; --name-server or --context says the target")
    made = migration_plan.make(held, target, found)
    if as_json:
        print_json(rows.row(made))
    else:
        now_ms = time.time_ns() // 1_000_000
        name = f"{source} ({from_.name_server})"
        for line in migration_file.lines(
            made, name=name, target=cluster.name_server, now_ms=now_ms
        ):
            click.echo(line)
    line = migration_file.summary(made)
    if made.problems():
        raise UnwellError(line)
    if not as_json:
        click.echo(line, err=True)


def _held(name: str, source: Target) -> Inventory:
    try:
        ask(source, Admin.cluster_info)
    except (CannotError, UnreachableError) as error:
        raise type(error)(
            f"source {name}: {error.message}; allowed: a name server of RocketMQ, from "
            "4.9 on"
        ) from error
    with progress(f"read {name}") as step:
        return ask(source, lambda admin: admin_inventory.read(admin, step))


async def _target(admin: Admin) -> tuple[Inventory, list[Check]]:
    found = await admin_doctor.examine(admin)
    return await admin_inventory.read(admin), [
        one for one in found if one.state != "ok"
    ]
