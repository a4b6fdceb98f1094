"""Clients that a process keeps from one task to the next.

Spark uses its Python workers again, and a micro-batch is short: opening connections and
asking for routes would be a good part of it. A client that a task fails with is closed.
"""

from __future__ import annotations

import atexit
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ropeway.client.base import Client
from ropeway.client.sync import LoopThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.spark.options import Options

C = TypeVar("C", bound=Client)

_KEPT_AT_MOST = 4
"""A task reads and another one writes in the same worker, and there may be two jobs."""


class Lent(Generic[C]):
    """A client that one task has, with the loop that it runs on."""

    def __init__(self, client: C, thread: LoopThread) -> None:
        self.client = client
        self.call = thread.call
        """Runs something on the loop and waits for it."""
        self.thread = thread


_kept: dict[tuple[object, ...], Lent[Any]] = {}
"""Nobody has these now; the one that was used last is the last one."""
_pid = os.getpid()


@contextmanager
def lent(
    kind: type[C], options: Options, make: Callable[[], C], *identity: str
) -> Iterator[Lent[C]]:
    """Have a client that is started, of this process alone.

    Args:
        kind: Its class.
        options: How it reaches the servers.
        make: Makes one where none is kept.
        identity: What else tells it from others.
    """
    reached = (options.name_server, options.credentials)
    key = (kind, *reached, options.tls, options.tls_server_name, *identity)
    one = _take(key) or _open(make)
    try:
        yield one
    except BaseException:
        _close(one)
        raise
    _keep(key, one)


def close_all() -> None:
    """Close the clients that nobody has."""
    while _kept:
        _close(_kept.popitem()[1])


def _take(key: tuple[object, ...]) -> Lent[Any] | None:
    global _pid  # noqa: PLW0603 - a process that was forked has none of its parent's
    if _pid != os.getpid():
        _pid = os.getpid()
        _kept.clear()
    return _kept.pop(key, None)


def _open(make: Callable[[], C]) -> Lent[C]:
    thread = LoopThread("ropeway-spark")
    try:
        client = make()
        thread.call(client.start())
    except BaseException:
        thread.stop()
        raise
    return Lent(client, thread)


def _keep(key: tuple[object, ...], one: Lent[Any]) -> None:
    if key in _kept:
        # Two threads had one each.
        _close(one)
        return
    _kept[key] = one
    if len(_kept) > _KEPT_AT_MOST:
        _close(_kept.pop(next(iter(_kept))))


def _close(one: Lent[Any]) -> None:
    try:
        one.call(one.client.close())
    finally:
        one.thread.stop()


atexit.register(close_all)
