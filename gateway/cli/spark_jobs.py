"""What commands have in common that run on Spark."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from ropeway.client import TopicNotFoundError
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.failures import (
    CannotError,
    MisusedError,
    RefusedError,
    reported,
)
from ropeway.gateway.cli.pairs import pairs
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ropeway.client import Admin
    from ropeway.gateway.cli.target import Target
    from ropeway.spark.session import SparkSession

    Queries = Callable[[], Iterable[Any]]
    """Gives Spark's queries."""

_LOOK_S = 1
_REFUSED = ResponseCode.NO_PERMISSION.name
"""What a worker of Spark says of it is all that is left of an error."""
_ERROR_LINE = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception): .+)$", re.MULTILINE)

master_option = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Where Spark runs: local[*], spark://HOST:PORT, yarn, k8s://...",
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A setting of Spark's.",
)
source_option = click.option(
    "--option",
    "options",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="An option of the data source, such as startingOffsets.",
)
once_option = click.option(
    "--once", is_flag=True, help="End when all is done that was there at the start."
)
checkpoint_option = click.option(
    "--checkpoint",
    required=True,
    metavar="DIRECTORY",
    help="Where the job keeps how far it is; it goes on from there.",
)
watch_option = click.option(
    "--watch", "is_watched", is_flag=True, help="Print a line for each batch."
)


def reach(
    cluster: Target, topics: Iterable[str], options: Mapping[str, str]
) -> dict[str, str]:
    """See whether a job's topics can be looked at, before Spark starts.

    Args:
        cluster: Where they are.
        topics: Those that exist need a right to look at them.
        options: What `--option` says, which comes first.

    Returns:
        The options of the data source.
    """

    async def look(admin: Admin) -> None:
        for topic in topics:
            with suppress(TopicNotFoundError):
                await admin.route(topic)

    # Those who name another place to the data source reach that.
    if not options.keys() & {"tier", "nameServer"}:
        ask(cluster, look)
    return {**cluster.source_options(), **options}


@contextmanager
def session(name: str, master: str, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A Spark session that ends with the command; failures become one line."""
    with reported(), spark_needed():
        from ropeway.spark.session import SparkFailedError, open_session

        try:
            spark = open_session(name, master, settings)
            try:
                yield spark
            finally:
                spark.stop()
        except SparkFailedError as error:
            why = reason(str(error))
            if _REFUSED in why:
                raise RefusedError(f"{why}: not allowed") from error
            raise CannotError(why) from error
        except ValueError as error:
            # What a topology or the data source says of what it was given.
            raise MisusedError(str(error)) from error


@contextmanager
def spark_needed() -> Iterator[None]:
    """Say what to install where PySpark is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "pyarrow", "pandas"):
            raise
        raise CannotError(
            f"{error.name} is not installed; Spark comes with "
            "pip install 'ropeway[spark]', and needs Java 17"
        ) from error


def reason(text: str) -> str:
    """The line that says why, of the many that Spark and its workers write."""
    found: list[str] = _ERROR_LINE.findall(text)
    return found[-1] if found else text.strip().split("\n", 1)[0]


def finish(wait: Callable[[int], bool], queries: Queries, *, is_watched: bool) -> None:
    """Wait until all queries have ended; one that fails raises.

    Args:
        wait: Waits for so many seconds; returns whether they have.
        queries: Tells them as they are now.
        is_watched: Whether to print a line for each batch.
    """
    from ropeway.streams.progress_report import Watch

    watch = Watch(click.echo)
    has_ended = False
    while not has_ended:
        has_ended = wait(_LOOK_S)
        if is_watched:
            watch.look(queries())
