"""`ropeway migrate mirror`: topics of another cluster, followed message by message."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ropeway.client import (
    ConnectionFailedError,
    RemotingError,
    ResponseError,
)
from ropeway.client.admin_mirrors import Mirror
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import context_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_rows, progress
from ropeway.gateway.cli.rows.migration import MirroredQueue
from ropeway.gateway.cli.target import of_context
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.admin_mirrors import Pair
    from ropeway.gateway.cli.target import Target

_POLL_S = 0.2
"""How soon a message of a queue that was at its end is looked for."""
_GROUPS_S = 2.0
"""How soon groups' offsets are followed."""
_RETRY_S = 1.0
"""How soon a server is asked again that was away, or had too much to do."""
_LATER = (ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)


@click.command(
    epilog=example(
        "ropeway migrate mirror --source rocketmq orders --exit-at-end",
        "ropeway migrate mirror --source rocketmq orders payments --group kitchen",
    )
)
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option(
    "--source",
    required=True,
    metavar="CONTEXT",
    shell_complete=context_names,
    help="The cluster to copy from: a context of `ropeway context add`.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="Have GROUP, which exists here, go on here where it does there; repeatable.",
)
@click.option(
    "--exit-at-end",
    is_flag=True,
    help="End when all is copied that there is; else go on until Ctrl-C.",
)
@cluster_options
@json_option(list[MirroredQueue])
def mirror(
    topics: tuple[str, ...],
    source: str,
    groups: tuple[str, ...],
    exit_at_end: bool,
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
                job = Mirror(there, here)
                return await _mirror(job, topics, groups, step, exit_at_end=exit_at_end)

    print_rows(run(cluster, work()), as_json=as_json)


async def _mirror(
    job: Mirror,
    topics: Sequence[str],
    groups: Sequence[str],
    step: Callable[[], None],
    *,
    exit_at_end: bool,
) -> list[MirroredQueue]:
    pairs = [pair for topic in topics for pair in await job.prepare(topic)]
    for group in groups:
        # Here, one that is not there is an error.
        await job.follow(group, pairs)
    following = asyncio.create_task(_follow(job, groups, pairs))
    try:
        async with asyncio.TaskGroup() as tasks:
            copying = [
                tasks.create_task(_copy(job, pair, step, exit_at_end=exit_at_end))
                for pair in pairs
            ]
    except* Exception as failures:  # noqa: BLE001 - the first one tells
        raise failures.exceptions[0] from None
    finally:
        following.cancel()
        await asyncio.wait([following])
    for group in groups:
        await job.follow(group, pairs)
    return [task.result() for task in copying]


async def _copy(
    job: Mirror, pair: Pair, step: Callable[[], None], *, exit_at_end: bool
) -> MirroredQueue:
    begin = offset = await job.next_offset(pair)
    while True:
        try:
            copied = await job.copy(pair, offset)
        except (ConnectionFailedError, ResponseError) as error:
            if exit_at_end or not _may_pass(error):
                raise
            await asyncio.sleep(_RETRY_S)
            continue
        offset = copied.next_offset
        for _ in range(copied.messages):
            step()
        if copied.messages:
            continue
        if exit_at_end:
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


def _may_pass(error: RemotingError) -> bool:
    """Whether a server that is away, or has too much to do, may do it later."""
    return not isinstance(error, ResponseError) or error.code in _LATER
