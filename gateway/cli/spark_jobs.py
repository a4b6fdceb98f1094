"""What commands have in common that run on Spark."""

from __future__ import annotations

import re
import signal
import threading
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
from ropeway.gateway.fast_imports import killable
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

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
create_option = click.option(
    "--create",
    "creates",
    is_flag=True,
    help="Create the topic that rows go to where there is none, with 8 queues.",
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
    cluster: Target,
    topics: Iterable[str],
    options: Mapping[str, str],
    *,
    must_exist: bool = True,
    into: str | None = None,
    creates: bool = False,
) -> dict[str, str]:
    """See whether a job's topics can be looked at, before Spark starts.

    Args:
        cluster: Where they are.
        topics: Those that exist need a right to look at them.
        options: What `--option` says, which comes first.
        must_exist: Whether all of them must.
        into: The one that rows go to, which the command can create.
        creates: Whether it is to.

    Returns:
        The options of the data source.

    Raises:
        CannotError: One does not exist; says how to create it.
    """

    async def look(admin: Admin) -> None:
        for topic in topics:
            try:
                await admin.route(topic)
            except TopicNotFoundError as error:
                if topic == into and creates:
                    await admin.create_topic(topic)
                elif must_exist:
                    hint = " or --create" if topic == into else ""
                    raise CannotError(
                        f"{error}; create it with: ropeway topic create {topic}{hint}"
                    ) from error

    # Those who name another place to the data source reach that.
    if "context" in options:
        return dict(options)
    if not options.keys() & {"tier", "nameServer"}:
        ask(cluster, look)
    return {**cluster.source_options(), **options}


@contextmanager
def session(
    name: str, master: str, settings: dict[str, str], file_format: str = ""
) -> Iterator[SparkSession]:
    """A Spark session that ends with the command; failures become one line.

    Args:
        name: Of the application.
        master: Where Spark runs.
        settings: What `--set` says.
        file_format: Of the tables that it reads or writes.
    """
    with reported(), spark_needed():
        with killable():
            from ropeway.spark.lakes import lake_settings
            from ropeway.spark.session import SparkFailedError, open_session

        try:
            settings = lake_settings(file_format, settings)
            with interrupts() as interrupted:
                spark = open_session(name, master, settings)
            with interrupts(), stopping(spark):
                if interrupted.is_set():
                    raise KeyboardInterrupt
                with interrupts(spark.sparkContext.cancelAllJobs) as interrupted:
                    try:
                        yield spark
                    except SparkFailedError:
                        if interrupted.is_set():
                            raise KeyboardInterrupt from None
                        raise
        except SparkFailedError as error:
            why = reason(str(error))
            if _REFUSED in why:
                raise RefusedError(f"{why}: not allowed") from error
            raise CannotError(why) from error
        except ValueError as error:
            # What a topology or the data source says of what it was given.
            raise MisusedError(str(error)) from error


@contextmanager
def stopping(spark: SparkSession) -> Iterator[None]:
    """End a session; after Ctrl-C without a word of what it could not finish."""
    try:
        yield
    except KeyboardInterrupt:
        spark.sparkContext.setLogLevel("OFF")
        raise
    finally:
        spark.stop()


@contextmanager
def interrupts(act: Callable[[], object] | None = None) -> Iterator[threading.Event]:
    """Have Ctrl-C set what this yields, and end nothing by itself; a second one does.

    Whoever raises KeyboardInterrupt while Spark's JVM is asked something gets
    tracebacks of it, and PySpark's own way, to ask it to cancel all jobs from within
    the signal's handler, many more.

    Args:
        act: Is called then, in a thread, each second until the block ends.
    """
    came, over = threading.Event(), threading.Event()
    if threading.current_thread() is not threading.main_thread():
        # Only that one may set signals.
        yield came
        return

    def take(number: int, _frame: object) -> None:
        if came.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        came.set()
        if act is not None:
            threading.Thread(target=go_on, args=[act], daemon=True).start()

    def go_on(act: Callable[[], object]) -> None:
        # What it acts on may end meanwhile.
        with suppress(Exception):
            act()
            while not over.wait(_LOOK_S):
                act()

    before = signal.signal(signal.SIGINT, take)
    try:
        yield came
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)


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


def finish(
    wait: Callable[[int], bool],
    queries: Queries,
    *,
    is_watched: bool,
    told: AbstractContextManager[None],
) -> None:
    """Wait until all queries have ended; one that fails raises, and so does Ctrl-C.

    Args:
        wait: Waits for so many seconds; returns whether they have.
        queries: Tells them as they are now.
        is_watched: Whether to print a line for each batch.
        told: Tells brokers of them meanwhile.
    """
    from ropeway.streams.progress_report import Watch

    watch = Watch(click.echo)
    has_ended = False
    with told, interrupts() as interrupted:
        while not has_ended:
            has_ended = wait(_LOOK_S)
            if interrupted.is_set():
                raise KeyboardInterrupt
            if is_watched:
                watch.look(queries())
