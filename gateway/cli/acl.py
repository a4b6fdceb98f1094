"""`ropeway acl`: policies of users, what access control decides, and new keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from ropeway.common.reasons import reason_of
from ropeway.gateway.cli import policies
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.cli.output import print_json
from ropeway.gateway.cli.rows.access import Decision

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target

_MISSING = "cryptography is not installed; it comes with: pip install ropeway[acl]"


@click.group(
    epilog=example(
        "ropeway acl check --principal alice --action PUB --resource topic:orders"
    )
)
def acl() -> None:
    """Show and change users' policies, and explain access decisions."""


for each in (policies.list_, policies.create, policies.delete):
    acl.add_command(each)


@acl.command(
    epilog=example(
        "ropeway acl check --principal alice --action PUB --resource topic:orders "
        "--source 10.0.0.7"
    )
)
@click.option(
    "--principal",
    required=True,
    metavar="NAME|HOOK:NAME",
    help="Whose request it would be; a hook and a name, like users:alice, asks for "
    "who signed in so.",
)
@click.option(
    "--action", required=True, help="PUB, SUB, CREATE, UPDATE, DELETE, GET or LIST."
)
@click.option(
    "--resource",
    required=True,
    metavar="KIND:NAME",
    help="topic:NAME, group:NAME, cluster:NAME or namespace:NAME.",
)
@click.option(
    "--source",
    "address",
    default="127.0.0.1",
    show_default=True,
    metavar="IP",
    help="Where it would come from.",
)
@cluster_options
@json_option(Decision)
def check(
    principal: str,
    action: str,
    resource: str,
    address: str,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print whether something would be allowed, and which rule decides it.

    The exit code is 0 where it is allowed, and 1 where it is not.
    """
    if not principal.strip(": "):
        raise MisusedError(f"--principal is {principal!r}; allowed: NAME or HOOK:NAME")
    found = ask(
        cluster,
        lambda admin: admin.explain_access(principal, action, resource, address),
    )
    if as_json:
        print_json(Decision(**structs.asdict(found)))
    else:
        word = "allowed" if found.allowed else "denied"
        who = found.principal or f"{principal}, whom nobody knows,"
        by = f" (hook {found.hook})" if found.hook else ""
        click.echo(f"{word}: {who} {action.upper()} {resource} from {address}")
        click.echo(f"rule: {found.rule}{by}")
        if found.reason:
            click.echo(f"reason: {found.reason}")
        if found.dry_run:
            click.echo("dry run: the server refuses nothing, and writes what it would")
    if not found.allowed:
        raise SystemExit(1)


@acl.command(epilog=example("ropeway acl key", "ropeway acl key --out acl.key"))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it to a new file of mode 0600 instead.",
)
def key(out: Path | None) -> None:
    """Print a new key that encrypts secrets in the route store."""
    try:
        from ropeway.acl.vault import new_key  # noqa: PLC0415 - of the extra `acl`
    except ImportError as error:
        raise CannotError(_MISSING) from error
    if out is None:
        click.echo(new_key())
        return
    from ropeway.storage import private  # noqa: PLC0415 - only for this one

    try:
        with open(out, "x", encoding="ascii", opener=private.opener) as file:
            file.write(f"{new_key()}\n")
    except FileExistsError:
        raise CannotError(
            f"{out} exists; allowed: a new file, for a key that is lost cannot be made "
            "again"
        ) from None
    except OSError as error:
        raise CannotError(f"cannot write {out}: {reason_of(error)}") from error
