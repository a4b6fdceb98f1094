"""`ropeway acl`: explain what access control decides, and make keys for its secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from gateway.cli.clients import json_option, name_server_option, run
from gateway.cli.examples import example
from gateway.cli.failures import CannotError, MisusedError
from gateway.cli.output import print_json
from ropeway.client import Admin, ClientConfig, Credentials
from storage import private

if TYPE_CHECKING:
    from gateway.wire.access_bodies import AccessExplanation

_MISSING = "cryptography is not installed; it comes with: pip install ropeway[acl]"


@click.group(
    epilog=example(
        "ropeway acl check --principal alice --action PUB --resource topic:orders"
    )
)
def acl() -> None:
    """Explain what access control decides, and make keys for its secrets."""


@acl.command(
    epilog=example(
        "ropeway acl check --principal alice --action PUB --resource topic:orders "
        "--from 10.0.0.7"
    )
)
@click.option("--principal", required=True, help="Whose request it would be.")
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
    "--from",
    "address",
    default="127.0.0.1",
    show_default=True,
    metavar="IP",
    help="Where it would come from.",
)
@click.option(
    "--access-key",
    envvar="ROPEWAY_ACCESS_KEY",
    show_envvar=True,
    help="Who asks: a user that may look at the cluster.",
)
@click.option(
    "--secret-key",
    envvar="ROPEWAY_SECRET_KEY",
    show_envvar=True,
    help="That user's; better in the environment than in a list of processes.",
)
@name_server_option
@json_option
def check(
    principal: str,
    action: str,
    resource: str,
    address: str,
    access_key: str | None,
    secret_key: str | None,
    name_server: str,
    as_json: bool,
) -> None:
    """Print whether something would be allowed, and which rule decides it.

    The exit code is 0 where it is allowed, and 1 where it is not.
    """
    if (access_key is None) != (secret_key is None):
        raise MisusedError("--access-key and --secret-key go together")
    config = ClientConfig()
    if access_key is not None and secret_key is not None:
        credentials = Credentials(access_key=access_key, secret_key=secret_key)
        config = msgspec.structs.replace(config, credentials=credentials)

    async def explained() -> AccessExplanation:
        async with Admin(name_server, config=config) as admin:
            return await admin.explain_access(principal, action, resource, address)

    found = run(explained())
    if as_json:
        print_json(found)
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
        from acl.vault import new_key  # noqa: PLC0415 - of the extra `acl`
    except ImportError as error:
        raise CannotError(_MISSING) from error
    if out is None:
        click.echo(new_key())
        return
    try:
        with open(out, "x", encoding="ascii", opener=private.opener) as file:
            file.write(f"{new_key()}\n")
    except FileExistsError:
        raise CannotError(
            f"{out} exists; allowed: a new file, for a key that is lost cannot be made "
            "again"
        ) from None
    except OSError as error:
        raise CannotError(f"cannot write {out}: {error.strerror}") from error
