"""`ropeway apply` and `ropeway diff`: a cluster as a file."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import click

from ropeway.gateway.cli import declared
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.differences import Difference, differences
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_json
from ropeway.gateway.cli.rows.access import DifferenceRow

if TYPE_CHECKING:
    from ropeway.client import Admin
    from ropeway.gateway.cli.target import Target

file_option = click.option(
    "-f",
    "--file",
    type=click.File("rb"),
    required=True,
    help="Topics, groups, users, policies and quotas, in YAML; - is stdin.",
)
prune_option = click.option(
    "--prune",
    is_flag=True,
    help="Delete what the sections of the file do not name.",
)
_SIGNS = {"create": "+", "update": "~", "delete": "-"}
_DONE = {"create": "created", "update": "updated", "delete": "deleted"}


@click.command(
    epilog=example(
        "ropeway apply -f - --dry-run < cluster.yaml",
        "ropeway apply -f - --yes < cluster.yaml",
    )
)
@file_option
@prune_option
@destructive_options
@cluster_options
@json_option(list[DifferenceRow])
def apply(
    file: IO[bytes], prune: bool, consent: Consent, cluster: Target, as_json: bool
) -> None:
    """Create and change what a file declares: topics, groups, users and so on.

    What is so already is left alone. Nothing is deleted without --prune.
    """
    found = _found(file, cluster, prune=prune)
    if consent.dry_run:
        _print(found, as_json=as_json)
        return
    if found and not consent.yes:
        _print(found, as_json=False, err=True)
        consent.to(f"apply {_counted(found)}")
    for one in found:
        ask(cluster, one.act)
        if not as_json:
            click.echo(f"{one.kind} {one.name} {_DONE[one.action]}")
    if as_json:
        _print(found, as_json=True)
    elif not found:
        click.echo("nothing differs")


@click.command(epilog=example("ropeway diff -f - < cluster.yaml"))
@file_option
@prune_option
@cluster_options
@json_option(list[DifferenceRow])
def diff(file: IO[bytes], prune: bool, cluster: Target, as_json: bool) -> None:
    """Print what `ropeway apply` would do; exit code 1 if there is anything."""
    found = _found(file, cluster, prune=prune)
    _print(found, as_json=as_json)
    if found:
        raise SystemExit(1)


def _found(file: IO[bytes], cluster: Target, *, prune: bool) -> list[Difference]:
    wanted = declared.read(file.read(), getattr(file, "name", "standard input"))

    async def look(admin: Admin) -> list[Difference]:
        return await differences(admin, wanted, prune=prune)

    return ask(cluster, look)


def _counted(found: list[Difference]) -> str:
    counts = {name: sum(one.action == name for one in found) for name in _SIGNS}
    return ", ".join(f"{count} to {name}" for name, count in counts.items() if count)


def _print(found: list[Difference], *, as_json: bool, err: bool = False) -> None:
    if as_json:
        print_json([_row(one) for one in found])
        return
    for one in found:
        click.echo(f"{_SIGNS[one.action]} {one.kind} {one.name}", err=err)
        for key, value in one.after.items():
            change = f"{_shown(one.before[key])} -> " if one.before else ""
            click.echo(f"    {key}: {change}{_shown(value)}", err=err)


def _row(one: Difference) -> DifferenceRow:
    return DifferenceRow(
        action=one.action,
        kind=one.kind,
        name=one.name,
        before=one.before,
        after=one.after,
    )


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key}={text}" for key, text in value.items())
    return str(value)
