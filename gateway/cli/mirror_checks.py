"""`ropeway migrate verify`: mirrors beside their source, message by message."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import click

from ropeway.client.admin_groups import known
from ropeway.client.admin_mirror_checks import Verifier
from ropeway.client.admin_mirrors import Mirror
from ropeway.common.throttle import Throttle
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import UnwellError
from ropeway.gateway.cli.mirrors import topics_at_source
from ropeway.gateway.cli.output import print_json, print_rows, progress
from ropeway.gateway.cli.rows.migration import (
    VerifiedMirror,
    VerifiedOffset,
    VerifiedQueue,
)
from ropeway.gateway.cli.target import of_context
from ropeway.gateway.cli.times import Seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.admin_mirrors import Pair
    from ropeway.gateway.cli.target import Target

_WAIT_S = 10.0
"""A mirror that runs is less behind, unless it has just begun."""
_AT_ONCE = 8
"""Queues that are compared at a time: enough for both sides to be busy."""


@click.command(
    epilog=example(
        "ropeway migrate verify --source rocketmq orders",
        "ropeway migrate verify --source rocketmq orders --group kitchen --rate 5000",
    )
)
@topics_at_source("that was copied from")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="Compare where GROUP goes on, too; repeatable.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="Read at most so many messages a second at each side.",
)
@click.option(
    "--wait",
    "wait_s",
    type=Seconds(),
    default=_WAIT_S,
    show_default=True,
    help="How long a mirror that is behind has time to copy what is missing.",
)
@cluster_options
@json_option(VerifiedMirror)
def verify(
    topics: tuple[str, ...],
    source: str,
    groups: tuple[str, ...],
    rate: float | None,
    wait_s: float,
    cluster: Target,
    as_json: bool,
) -> None:
    """Compare mirrors of each TOPIC with the source, message by message.

    It changes nothing. The exit code is 4 where a message is missing, differs or was
    never at the source, or a group goes on elsewhere. What the source gets after the
    command has begun is not looked at.
    """
    from_ = of_context(source)

    async def work() -> VerifiedMirror:
        async with from_.admin() as there, cluster.admin() as here:
            verifier = Verifier(there, here, Throttle(rate, time.monotonic), wait_s)
            mirror = Mirror(there, here)
            pairs = [pair for topic in topics for pair in await mirror.pairs(topic)]
            for group in groups:
                await known(here, group)
            with progress(f"verify {source}") as step:
                queues = await _queues(verifier, pairs, step)
            return VerifiedMirror(
                queues=queues, offsets=await _offsets(verifier, groups, pairs)
            )

    found = run(cluster, work())
    if as_json:
        print_json(found)
    else:
        print_rows(found.queues, as_json=False)
        if found.offsets:
            click.echo()
            print_rows(found.offsets, as_json=False)
    _judge(found)


async def _queues(
    verifier: Verifier, pairs: Sequence[Pair], step: Callable[[], None]
) -> list[VerifiedQueue]:
    free = asyncio.Semaphore(_AT_ONCE)

    def steps(count: int) -> None:
        for _ in range(count):
            step()

    async def one(pair: Pair) -> VerifiedQueue:
        async with free:
            found = await verifier.verify(pair, steps)
        return VerifiedQueue(
            topic=pair.target.topic,
            queue_id=pair.target.queue_id,
            equal=found.equal,
            missing=found.missing,
            extra=found.extra,
            differing=found.differing,
            first_differing=found.offset,
            field=found.field,
        )

    try:
        async with asyncio.TaskGroup() as tasks:
            verified = [tasks.create_task(one(pair)) for pair in pairs]
    except* Exception as failures:  # noqa: BLE001 - the first one tells
        raise failures.exceptions[0] from None
    return [task.result() for task in verified]


async def _offsets(
    verifier: Verifier, groups: Sequence[str], pairs: Sequence[Pair]
) -> list[VerifiedOffset]:
    rows = []
    for group in groups:
        for pair in pairs:
            found = await verifier.follows(group, pair)
            if found is not None:
                rows.append(
                    VerifiedOffset(
                        group=group,
                        topic=pair.target.topic,
                        queue_id=pair.target.queue_id,
                        at_source=found.source,
                        at_target=found.target,
                    )
                )
    return rows


def _judge(found: VerifiedMirror) -> None:
    """End with what is wrong.

    Raises:
        UnwellError: Something is.
    """
    said = []
    for name in ("missing", "extra", "differing"):
        count = sum(getattr(one, name) for one in found.queues)
        if count:
            said.append(f"{count:,} messages {name}")
    elsewhere = sum(one.at_source != one.at_target for one in found.offsets)
    if elsewhere:
        said.append(f"groups go on elsewhere in {elsewhere:,} queues")
    if said:
        raise UnwellError("the target is not as the source: " + ", ".join(said))
