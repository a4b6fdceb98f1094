"""`ropeway migrate finish`: nothing of a topic is left at the source."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import click

from ropeway.client.admin_finish import Finish, Left
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import UnwellError
from ropeway.gateway.cli.mirrors import topics_at_source
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows import Planned
from ropeway.gateway.cli.rows.migration import FinishedTopic
from ropeway.gateway.cli.target import of_context
from ropeway.gateway.cli.times import Seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.cli.target import Target

_WAIT_S = 60.0
"""RocketMQ looks every 30 s which transactions have ended."""
_LOOK_S = 1.0


@click.command(
    epilog=example(
        "ropeway migrate finish --source rocketmq orders --dry-run",
        "ropeway migrate finish --source rocketmq orders payments --yes",
    )
)
@topics_at_source("that they came from")
@click.option(
    "--wait",
    "wait_s",
    type=Seconds(),
    default=_WAIT_S,
    show_default=True,
    help="How long to wait for messages that wait at the source.",
)
@click.option(
    "--leave",
    is_flag=True,
    help="Finish even if messages stay at the source; nobody gets them.",
)
@destructive_options
@cluster_options
@json_option(list[FinishedTopic], Planned)
def finish(
    topics: tuple[str, ...],
    source: str,
    wait_s: float,
    *,
    leave: bool,
    consent: Consent,
    cluster: Target,
    as_json: bool,
) -> None:
    """End the migration of each TOPIC, which was cut over; there is no way back then.

    What came to the source after the cut-over is sent here. The exit code is 4 where
    messages stay at the source that nobody would get; nothing is finished then.
    """
    from_ = of_context(source)

    async def look() -> dict[str, Left]:
        async with from_.admin() as there, cluster.admin() as here:
            job = Finish(there, here)
            for topic in topics:
                await job.config(topic)
            return await _look(job, topics, 0 if consent.dry_run else wait_s)

    found = run(cluster, look())
    staying = "; ".join(
        f"{topic}: {words(left)}" for topic, left in found.items() if left.stays
    )
    if staying and not leave:
        print_rows(
            [_row(topic, left) for topic, left in found.items()], as_json=as_json
        )
        raise UnwellError(
            f"messages are left at the source: {staying}; have them delivered and read "
            "there, or give them up with --leave"
        )
    late = sum(left.late for left in found.values())
    action = f"end the migration of {', '.join(topics)}"
    if late:
        action += f", and send {late:,} late messages here"
    if staying:
        action += f", and leave at the source {staying}"
    if not consent.to(action, as_json=as_json):
        return

    async def work() -> list[FinishedTopic]:
        async with from_.admin() as there, cluster.admin() as here:
            job = Finish(there, here)
            rows = []
            for topic, left in found.items():
                brought = await job.bring(topic)
                await job.end(topic)
                rows.append(_row(topic, left, brought=brought, is_finished=True))
            return rows

    print_rows(run(cluster, work()), as_json=as_json)


async def _look(job: Finish, topics: Sequence[str], wait_s: float) -> dict[str, Left]:
    """Look until nothing waits at the source, or the time is over."""
    end_s = time.monotonic() + wait_s
    while True:
        found = {topic: await job.look(topic) for topic in topics}
        left_s = end_s - time.monotonic()
        if left_s <= 0 or not any(one.waits for one in found.values()):
            return found
        await asyncio.sleep(min(_LOOK_S, left_s))


def words(left: Left) -> str:
    """What stays, in words."""
    kinds = {
        "delayed": left.delayed,
        "timed": left.timed,
        "half, at most": left.half,
        "to be tried again": left.retry,
        "unread by groups that are not here": left.unread,
    }
    said = [f"{count:,} {kind}" for kind, count in kinds.items() if count]
    if left.absent:
        said.append("what it has, which no broker there knows now")
    return ", ".join(said)


def _row(
    topic: str, left: Left, *, brought: int = 0, is_finished: bool = False
) -> FinishedTopic:
    return FinishedTopic(
        topic=topic,
        finished=is_finished,
        brought=brought,
        late=max(0, left.late - brought),
        delayed=left.delayed,
        timed=left.timed,
        half=left.half,
        retry=left.retry,
        unread=left.unread,
    )
