"""`ropeway migrate mirror`: topics of another cluster, followed message by message."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ropeway.client import RemotingError
from ropeway.client.admin_mirrors import READ_BYTES, Mirror
from ropeway.client.errors import BrokerNotFoundError, TopicNotFoundError
from ropeway.client.retry import is_outage
from ropeway.common.throttle import Throttle
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import context_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_rows, progress
from ropeway.gateway.cli.rows.migration import MirroredQueue
from ropeway.gateway.cli.target import of_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.admin_mirrors import Pair
    from ropeway.gateway.cli.target import Target

C = TypeVar("C", bound="Callable[..., Any]")

_POLL_S = 0.2
"""How soon a message of a queue that was at its end is looked for."""
_GROUPS_S = 2.0
"""How soon groups' offsets are followed."""
_RETRY_S, _LONGEST_RETRY_S = 0.5, 10.0
"""How soon a server is asked again that was away, or had too much to do: at first, and
when it has been so for long."""


def topics_at_source(which: str, *, required: bool = True) -> Callable[[C], C]:
    """Take topics, and the context of the cluster that they come from."""

    def add(command: C) -> C:
        source = click.option(
            "--source",
            required=True,
            metavar="CONTEXT",
            shell_complete=context_names,
            help=f"The cluster {which}: a context of `ropeway context add`.",
        )
        topics = click.argument(
            "topics",
            metavar="TOPIC..." if required else "[TOPIC...]",
            nargs=-1,
            required=required,
        )
        return topics(source(command))

    return add


groups_at_source = click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="Have GROUP, which exists here, go on here where it does there; repeatable.",
)


@click.command(
    epilog=example(
        "ropeway migrate mirror --source rocketmq orders --exit-at-end",
        "ropeway migrate mirror --source rocketmq orders payments --group kitchen",
    )
)
@topics_at_source("to copy from")
@groups_at_source
@click.option(
    "--exit-at-end",
    is_flag=True,
    help="End when all is copied that there is; else go on until Ctrl-C.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="Copy at most so many messages a second, of all queues together.",
)
@cluster_options
@json_option(list[MirroredQueue])
def mirror(
    topics: tuple[str, ...],
    source: str,
    groups: tuple[str, ...],
    exit_at_end: bool,
    rate: float | None,
    cluster: Target,
    as_json: bool,
) -> None:
    """Copy messages of each TOPIC from a source, and follow it.

    Each message keeps its queue, offset, unique key, properties, and the times when it
    was born and stored. A topic that is not here is created, closed to producers; one
    that is here has to be a mirror already, and is gone on with. The source stays as
    it is.
    """
    from_ = of_context(source)

    async def work() -> list[MirroredQueue]:
        async with from_.admin() as there, cluster.admin() as here:
            with progress(f"mirror {source}") as step:
                # So many a second come a pull at a time.
                job = Mirror(there, here, READ_BYTES if rate is None else 1)
                given = _Work(
                    job, Throttle(rate, time.monotonic), Outage(), step, exit_at_end
                )
                return await _mirror(given, topics, groups)

    print_rows(run(cluster, work()), as_json=as_json)


class Outage:
    """Says when servers are away, and when all queues go on; once each."""

    def __init__(self) -> None:
        self._waiting: set[Pair] = set()

    def begins(self, pair: Pair, error: RemotingError) -> None:
        """A queue waits for a server; the first one says so."""
        if not self._waiting:
            click.echo(f"waiting for servers: {error}", err=True)
        self._waiting.add(pair)

    def ends(self, pair: Pair) -> None:
        """A queue goes on; the last one says so."""
        if pair in self._waiting:
            self._waiting.remove(pair)
            if not self._waiting:
                click.echo("servers are back, going on", err=True)


class _Work(NamedTuple):
    """What the queues of a mirror have in common."""

    job: Mirror
    throttle: Throttle
    outage: Outage
    step: Callable[[], None]
    exit_at_end: bool


async def _mirror(
    work: _Work, topics: Sequence[str], groups: Sequence[str]
) -> list[MirroredQueue]:
    job = work.job
    pairs = [pair for topic in topics for pair in await job.prepare(topic)]
    for group in groups:
        # Here, one that is not there is an error.
        await job.follow(group, pairs)
    following = asyncio.create_task(_follow(job, groups, pairs))
    try:
        async with asyncio.TaskGroup() as tasks:
            copying = [tasks.create_task(_copy(work, pair)) for pair in pairs]
    except* Exception as failures:  # noqa: BLE001 - the first one tells
        raise failures.exceptions[0] from None
    finally:
        following.cancel()
        await asyncio.wait([following])
    for group in groups:
        await job.follow(group, pairs)
    return [task.result() for task in copying]


async def _copy(work: _Work, pair: Pair) -> MirroredQueue:
    begin = offset = await work.job.next_offset(pair)
    retry_s, is_sure = _RETRY_S, True
    while True:
        try:
            if not is_sure:
                # Whoever leads there now has what it has.
                offset = await work.job.next_offset(pair)
                is_sure = True
            async with aclosing(work.job.copies(pair, offset)) as copies:
                async for copied in copies:
                    work.outage.ends(pair)
                    offset, retry_s = copied.next_offset, _RETRY_S
                    for _ in range(copied.messages):
                        work.step()
                    await work.throttle.take(copied.messages)
        except RemotingError as error:
            if work.exit_at_end or not may_pass(error):
                raise
            work.outage.begins(pair, error)
            await asyncio.sleep(retry_s)
            retry_s, is_sure = min(2 * retry_s, _LONGEST_RETRY_S), False
            continue
        work.outage.ends(pair)
        retry_s = _RETRY_S
        if work.exit_at_end:
            return MirroredQueue(
                topic=pair.target.topic,
                queue_id=pair.target.queue_id,
                messages=offset - begin,
                next_offset=offset,
            )
        await asyncio.sleep(_POLL_S)


async def _follow(job: Mirror, groups: Sequence[str], pairs: Sequence[Pair]) -> None:
    while True:
        await asyncio.sleep(_GROUPS_S)
        for group in groups:
            # What cannot be asked now is asked next time.
            with suppress(RemotingError):
                await job.follow(group, list(pairs))


def may_pass(error: RemotingError) -> bool:
    """Return whether a server that is away, or has too much to do, may do it later.

    A name server that was started again knows no broker until that one has said so.
    """
    return is_outage(error) or isinstance(
        error, BrokerNotFoundError | TopicNotFoundError
    )
