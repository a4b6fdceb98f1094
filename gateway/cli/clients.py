"""What commands have in common that are clients of a running node."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.failures import MisusedError, reported

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

T = TypeVar("T")

name_server_option = click.option(
    "--name-server",
    envvar="ROPEWAY_NAME_SERVER",
    default="127.0.0.1:9876",
    show_default=True,
    show_envvar=True,
    metavar="HOST:PORT[;...]",
    help="Whom to ask where things are.",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for scripts."
)

yes_option = click.option("--yes", is_flag=True, help="Do not ask back.")


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
