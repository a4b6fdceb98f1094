"""What commands have in common that are clients of a running node."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ropeway.client import ClientConfig, ConnectionFailedError, ResponseError
from ropeway.client.diagnosis import diagnose
from ropeway.gateway.cli.failures import MisusedError, reported, told

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from ropeway.client import Admin
    from ropeway.gateway.cli.target import Target

T = TypeVar("T")


def ask(cluster: Target, work: Callable[[Admin], Coroutine[Any, Any, T]]) -> T:
    """Run what an administrator's client does, and give back what it returns."""

    async def ask_all() -> T:
        async with cluster.admin() as admin:
            return await work(admin)

    return run(cluster, ask_all())


def run(cluster: Target, work: Coroutine[Any, Any, T]) -> T:
    """Run a client's work, and turn what goes wrong into one line."""
    with reported(), quiet_on_closed_pipe():
        try:
            return asyncio.run(diagnosed(cluster, work))
        except ValueError as error:
            # What the client says of arguments that no broker would take.
            raise MisusedError(str(error)) from error


async def diagnosed(cluster: Target, work: Coroutine[Any, Any, T]) -> T:
    """Do a client's work; where it fails for the way to the cluster, say why.

    Raises:
        ClickException: The line of a diagnosis, with what to do.
        RemotingError: It failed for something else.
    """
    try:
        return await work
    except (ConnectionFailedError, ResponseError) as error:
        found = await diagnose(error, cluster.config(ClientConfig))
        if found is None:
            raise
        raise told(found) from error


@contextmanager
def quiet_on_closed_pipe() -> Iterator[None]:
    """End like other commands when `head` has read enough."""
    previous = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, previous)
