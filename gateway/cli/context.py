"""`ropeway context`: save how clusters are reached, and choose between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.cluster_options import json_option, options
from ropeway.gateway.cli.cluster_settings import SETTINGS, given
from ropeway.gateway.cli.completion import context_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.context_file import Context
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import members, print_json, print_rows
from ropeway.gateway.cli.rows.access import ContextRow, SettingRow
from ropeway.gateway.cli.tables import print_table
from ropeway.gateway.cli.target import choose, name_servers, secret_in, target

_PATHS = ("secret_key_file", "token_file", "tls_ca", "tls_cert", "tls_key")
_SECRETS = ("secret_key", "token")
_ADD = (
    "ropeway context add prod -n mq-1:9876 --access-key ops "
    "--secret-key-file - --tls-ca ca.pem < secret.txt"
)


name_argument = click.argument("name", shell_complete=context_names)


@click.group(epilog=example(_ADD, "ropeway context use prod"))
def context() -> None:
    """Save how clusters are reached, and choose the one that commands use."""


@context.command(epilog=example(_ADD))
@click.argument("name")
@click.option(
    "--site", metavar="URL", help="The page of a node, for `ropeway metrics`."
)
@click.option(
    "--default-output",
    type=click.Choice(["table", "json"]),
    help="What commands print where nothing else is said.",
)
def add(name: str, site: str | None, default_output: str | None) -> None:
    """Save the cluster options that are given under NAME.

    A file with a secret is read anew each time. What comes by stdin is kept in the
    file with contexts, which its owner alone can read.
    """
    if not name.strip():
        raise MisusedError(f"context name is {name!r}; allowed: one that can be seen")
    contexts = context_file.load()
    if name in contexts.contexts:
        raise MisusedError(
            f"context {name!r} exists; `ropeway context delete {name}` deletes it"
        )
    said = dict(given(click.get_current_context()))
    if said.pop("context", None) is not None:
        raise MisusedError("--context names one that is there; allowed: NAME alone")
    contexts.contexts[name] = _made({**said, "site": site, "output": default_output})
    contexts.current = contexts.current or name
    context_file.save(contexts)
    used = f"ropeway context use {name}"
    is_used = contexts.current == name
    click.echo(
        f"context {name} added; "
        + ("commands use it from now on" if is_used else f"to use it: {used}")
    )


add.params += options(is_complete=True)


def _made(said: dict[str, Any]) -> Context:
    for name in _SECRETS:
        if said.get(f"{name}_file") == "-":
            said[name] = secret_in(said.pop(f"{name}_file"))
    for name in _PATHS:
        if said.get(name) is not None:
            said[name] = str(Path(said[name]).absolute())
    if said.get("name_server") is not None:
        said["name_server"] = name_servers(said["name_server"])
    return Context(**said)


@context.command(epilog=example("ropeway context use prod"))
@name_argument
def use(name: str) -> None:
    """Have commands use the context NAME, unless they are told otherwise."""
    contexts = context_file.load()
    contexts.get(name)
    contexts.current = name
    context_file.save(contexts)
    click.echo(f"commands use context {name} from now on")


@context.command("list", epilog=example("ropeway context list"))
@json_option(list[ContextRow])
def list_(as_json: bool) -> None:
    """Print all contexts; the current one has a star."""
    contexts = context_file.load()
    rows = [
        ContextRow(
            current=name == contexts.current,
            name=name,
            name_server=one.name_server or "",
            access=_access(one),
            tls=_speaks_tls(one),
        )
        for name, one in sorted(contexts.contexts.items())
    ]
    if as_json:
        print_json(rows)
        return
    stars = ({"current": "*" if row.current else ""} for row in rows)
    print_table([members(row) | star for row, star in zip(rows, stars, strict=True)])


def _access(one: Context) -> str:
    if one.token or one.token_file:
        return "token"
    return one.access_key or ("certificate" if one.tls_cert else "")


def _speaks_tls(one: Context) -> bool:
    if one.tls is not None:
        return one.tls
    return any((one.tls_ca, one.tls_cert, one.tls_server_name))


@context.command(epilog=example("ropeway context show", "ropeway context show prod"))
@click.argument("name", required=False, shell_complete=context_names)
@json_option(dict[str, SettingRow])
def show(name: str | None, as_json: bool) -> None:
    """Print what a command would use now, and where each setting is from.

    With NAME, what it would use with --context NAME. Secrets are not shown.
    """
    found = choose({"context": name} if name else given(click.get_current_context()))
    # It says what does not fit together.
    target(found)
    order = [setting.name for setting in SETTINGS if setting.name in found]
    rows = [
        SettingRow(
            setting=each,
            value="***" if each in _SECRETS else found[each].value,
            from_=found[each].source,
        )
        for each in order
    ]
    if as_json:
        print_json({row.setting: row for row in rows})
    else:
        print_rows(rows, as_json=False)


@context.command(epilog=example("ropeway context delete prod --yes"))
@name_argument
@destructive_options
def delete(name: str, consent: Consent) -> None:
    """Delete the context NAME."""
    contexts = context_file.load()
    contexts.get(name)
    if not consent.to(f"delete context {name} with the secrets in it"):
        return
    del contexts.contexts[name]
    if contexts.current == name:
        contexts.current = None
    context_file.save(contexts)
    click.echo(f"context {name} deleted")
