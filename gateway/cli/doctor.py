"""`ropeway doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ropeway.client import admin_doctor
from ropeway.client.admin_doctor import Check
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError, UnwellError
from ropeway.gateway.cli.output import print_rows

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target


@click.command(
    epilog=example("ropeway doctor", "ropeway doctor --config ropeway.toml --only-here")
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Check this configuration and what it names, from this machine.",
)
@click.option(
    "--only-here", is_flag=True, help="Check this machine only, before the first start."
)
@click.option(
    "--all", "everything", is_flag=True, help="Also print checks that found nothing."
)
@click.option(
    "--fix",
    is_flag=True,
    help="Make Pulsar fit the routes: delete what is left of deleted topics, and make "
    "partitions that are missing, empty. Needs --config.",
)
@cluster_options
@json_option(list[Check])
def doctor(
    config_file: Path | None,
    only_here: bool,
    everything: bool,
    fix: bool,
    cluster: Target,
    as_json: bool,
) -> None:
    """Check a configuration, Pulsar, ZooKeeper, ports, nodes and clocks.

    Each finding says what to do. The exit code is 4 where there is a problem.
    """
    if fix and config_file is None:
        raise MisusedError(
            "--fix needs --config, which says where Pulsar and routes are"
        )
    found: list[Check] = []
    if config_file is not None or only_here:
        # It opens what a node opens; to ask nodes, none of that is needed.
        from ropeway.gateway.cli import checks  # noqa: PLC0415

        found += checks.examine(config_file, fix=fix)
    if not only_here:
        found += ask(cluster, admin_doctor.examine)
    shown = [one for one in found if everything or as_json or one.state != "ok"]
    if as_json:
        print_rows(shown, as_json=True)
    for one in shown if not as_json else ():
        click.echo(f"{one.state} {one.check}: {one.text}")
        if one.advice:
            click.echo(f"  -> {one.advice}")
    problems = sum(one.state == "problem" for one in found)
    if not as_json:
        click.echo(f"{len(found)} checks, {problems} problems")
    if problems:
        raise UnwellError(f"{problems} of {len(found)} checks found a problem")
