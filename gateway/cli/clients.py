"""What commands have in common that are clients of a running node."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.failures import MisusedError, reported
from ropeway.client import Admin

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")

name_server_option = click.option(
    "--name-server",
    envvar="ROPEWAY_NAME_SERVER",
    default="127.0.0.1:9876",
    show_default=True,
    show_envvar=True,
    metavar="HOST:PORT[;...]",
    help="Whom to ask where things are.",
)

_JSON = "ropeway.json"


def _choose(context: click.Context, _: click.Parameter, output: str) -> None:
    context.meta[_JSON] = output == "json"


def _is_json(context: click.Context, _: click.Parameter, flag: bool) -> bool:
    return flag or context.meta[_JSON]


def json_option(command: F) -> F:
    """Let users choose between tables and JSON; the command gets `as_json`."""
    option = click.option(
        "--json",
        "as_json",
        is_flag=True,
        callback=_is_json,
        help="Short for --output json.",
    )
    output = click.option(
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        # Before the other one is looked at.
        is_eager=True,
        expose_value=False,
        callback=_choose,
        help="A table for people, or JSON for scripts.",
    )
    return output(option(command))


yes_option = click.option("--yes", is_flag=True, help="Do not ask back.")


def confirm(question: str, *, yes: bool) -> None:
    """Ask back before anything that cannot be taken back, unless told not to."""
    if not yes:
        click.confirm(question, abort=True, err=True)


def ask(name_server: str, work: Callable[[Admin], Coroutine[Any, Any, T]]) -> T:
    """Run what an administrator's client does, and give back what it returns."""

    async def ask_all() -> T:
        async with Admin(name_server) as admin:
            return await work(admin)

    return run(ask_all())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a client's work, and turn what goes wrong into one line."""
    with reported(), quiet_on_closed_pipe():
        try:
            return asyncio.run(work)
        except ValueError as error:
            # What the client says of arguments that no broker would take.
            raise MisusedError(str(error)) from error


@contextmanager
def quiet_on_closed_pipe() -> Iterator[None]:
    """End like other commands when `head` has read enough."""
    previous = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, previous)
