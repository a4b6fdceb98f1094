"""`ropeway user`: creates, changes, lists and deletes users of access control."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import admin_users
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.access import UserRow
from ropeway.gateway.cli.target import secret_in
from ropeway.gateway.wire.access_bodies import UserInfo

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target

_CREATE = "ropeway user create alice --password-file alice.password"

super_option = click.option(
    "--super/--normal", "is_super", default=None, help="Whether it may do everything."
)


@click.group(epilog=example(_CREATE))
def user() -> None:
    """Create, change, list and delete users of access control."""


@user.command("list", epilog=example("ropeway user list"))
@cluster_options
@json_option(list[UserRow])
def list_(cluster: Target, as_json: bool) -> None:
    """Print all users."""
    rows = [
        UserRow(user=one.username, type=one.user_type, status=one.user_status)
        for one in ask(cluster, admin_users.users)
    ]
    print_rows(rows, as_json=as_json)


@user.command(epilog=example(_CREATE))
@click.argument("name")
@click.option(
    "--password-file",
    required=True,
    metavar="FILE|-",
    help="The password, which is the secret key: a file, or - for a line of stdin.",
)
@super_option
@cluster_options
def create(
    name: str, password_file: str, is_super: bool | None, cluster: Target
) -> None:
    """Create a user, which may do nothing before it has policies."""
    made = UserInfo(
        username=name,
        password=secret_in(password_file),
        user_type=_type(is_super) or "Normal",
    )
    ask(cluster, lambda admin: admin_users.create(admin, made))
    click.echo(f"user {name} created")


@user.command(epilog=example("ropeway user update alice --disable"))
@click.argument("name")
@click.option("--password-file", metavar="FILE|-", help="A new password, likewise.")
@super_option
@click.option("--enable/--disable", default=None, help="Whether it can sign in.")
@cluster_options
def update(
    name: str,
    password_file: str | None,
    is_super: bool | None,
    enable: bool | None,
    cluster: Target,
) -> None:
    """Change a user; settings that are not given stay."""
    if password_file is None and is_super is None and enable is None:
        raise MisusedError("nothing to change; --help has what can be")
    changed = UserInfo(
        username=name,
        password=None if password_file is None else secret_in(password_file),
        user_type=_type(is_super),
        user_status=None if enable is None else ("enable" if enable else "disable"),
    )
    ask(cluster, lambda admin: admin_users.known(admin, name))
    ask(cluster, lambda admin: admin_users.update(admin, changed))
    click.echo(f"user {name} updated")


def _type(is_super: bool | None) -> str | None:
    return None if is_super is None else ("Super" if is_super else "Normal")


@user.command(epilog=example("ropeway user delete alice --yes"))
@click.argument("name")
@destructive_options
@cluster_options
def delete(name: str, consent: Consent, cluster: Target) -> None:
    """Delete a user with its policies."""
    ask(cluster, lambda admin: admin_users.known(admin, name))
    if consent.to(f"delete user {name} with its policies"):
        ask(cluster, lambda admin: admin_users.delete(admin, name))
        click.echo(f"user {name} deleted")
