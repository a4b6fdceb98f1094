"""`--watch`: look again and again, until Ctrl-C."""

from __future__ import annotations

import itertools
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ropeway.gateway.cli.times import Seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])

_watch = partial(
    click.option,
    "--watch",
    "watch_s",
    type=Seconds(0.1),
    help="Look again every so many seconds, until Ctrl-C.",
)
watch_option = _watch()
count_option = click.option(
    "--count", "looks", type=click.IntRange(1), help="With --watch: stop after N looks."
)

_by_itself = _watch(default=2.0, show_default=True)
_once = click.option("--once", is_flag=True, help="Look once, as for a pipe.")


def by_itself_options(command: F) -> F:
    """Give a command that looks again by itself `--watch`, and `--once`."""
    return _by_itself(_once(command))


def watched(show: Callable[[], None], watch_s: float | None, looks: int | None) -> None:
    """Show something once, or every so many seconds.

    A terminal is cleared before each look; a pipe gets an empty line between two.
    """
    if watch_s is None:
        show()
        return
    for number in itertools.count(1):
        if sys.stdout.isatty():
            click.clear()
        elif number > 1:
            click.echo()
        show()
        if number == looks:
            return
        time.sleep(watch_s)
