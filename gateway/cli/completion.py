"""`ropeway completion`, and the names that a shell completes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from ropeway.client import Admin, RemotingError
from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.cluster_settings import given
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.target import find, target

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_TIMEOUT_S = 2.0
"""Who presses the tab key does not wait longer."""
_PROGRAM = "ropeway"


@click.command(epilog=example("ropeway completion bash >> ~/.bashrc"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes SHELL complete commands and names."""
    found = get_completion_class(shell)
    if found is None:
        raise CannotError(f"there is no completion for {shell}")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, _PROGRAM, "_ROPEWAY_COMPLETE").source())


def _names(
    ask: Callable[[Admin], Coroutine[None, None, list[str]]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
        async def find_names() -> list[str]:
            cluster = target(find(context))
            async with asyncio.timeout(_TIMEOUT_S), cluster.admin() as admin:
                return await ask(admin)

        if "-" in given(context).values():
            # A secret that is yet to be typed.
            return []
        try:
            names = asyncio.run(find_names())
        except (click.ClickException, RemotingError, TimeoutError, ValueError):
            # A shell has no place for a reason.
            return []
        return [name for name in names if name.startswith(begun)]

    return complete


def context_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The names of contexts that begin so."""
    names = sorted(context_file.load().contexts)
    return [name for name in names if name.startswith(begun)]


async def _brokers(admin: Admin) -> list[str]:
    return sorted((await admin.cluster_info()).broker_addr_table)


topic_names = _names(Admin.topics)
group_names = _names(Admin.groups)
broker_names = _names(_brokers)

topic_argument = click.argument("topic", shell_complete=topic_names)
group_argument = click.argument("group", shell_complete=group_names)
