"""`ropeway topic`: creates, changes and deletes topics; `topic_views` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import Admin, ResponseError, TopicNotFoundError, admin_topics
from ropeway.gateway.cli import topic_views
from ropeway.gateway.cli.clients import ask, run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_argument, topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, RefusedError
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.topics import CompactedQueue
from ropeway.gateway.cli.trims import trim
from ropeway.gateway.topics_config import TOPIC_QUEUES
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target

queues_option = click.option(
    "--queues", type=click.IntRange(1, 1024), help="Queues on each broker."
)
perm_option = click.option(
    "--perm",
    type=click.Choice(["2", "4", "6"]),
    help="2: only sending, 4: only reading, 6: both.",
)

_DEFAULT_PERM = "6"


@click.group(epilog=example("ropeway topic create orders --queues 16"))
def topic() -> None:
    """Create, change, show and delete topics."""


views = (topic_views.list_, topic_views.show, topic_views.stats, topic_views.describe)
for view in (*views, trim):
    topic.add_command(view)


@topic.command(epilog=example("ropeway topic create orders --queues 16"))
@click.argument("name")
@queues_option
@perm_option
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="NAME=VALUE",
    help="What it is like, such as entry.format=PULSAR; may be given several times.",
)
@cluster_options
def create(
    name: str,
    queues: int | None,
    perm: str | None,
    attributes: tuple[str, ...],
    cluster: Target,
) -> None:
    """Create a topic that does not exist."""
    pairs = (one.partition("=")[::2] for one in attributes)

    async def make() -> None:
        async with cluster.admin() as admin:
            if await _exists(admin, name):
                raise CannotError(f"topic {name} exists already")
            await admin.create_topic(
                name,
                queues or TOPIC_QUEUES,
                perm=int(perm or _DEFAULT_PERM),
                attributes=dict(pairs),
            )

    run(cluster, make())
    click.echo(f"topic {name} created")


async def _exists(admin: Admin, name: str) -> bool:
    """Whether there is a topic, for whom may list topics or at least look at this one.

    Raises:
        RefusedError: Neither.
        RemotingError: No name server answers.
    """
    try:
        return name in await admin.topics()
    except ResponseError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
    try:
        await admin.route(name)
    except TopicNotFoundError:
        return False
    except ResponseError as error:
        if error.code != ResponseCode.NO_PERMISSION:
            raise
        raise RefusedError(
            f"{error.address}: not allowed; creating topic {name} takes the rights to "
            f"Create and to Get it, so that one that exists is not changed: "
            f"{error.remark}"
        ) from error
    return True


@topic.command(epilog=example("ropeway topic update orders --queues 32"))
@click.argument("name", shell_complete=topic_names)
@queues_option
@perm_option
@cluster_options
def update(name: str, queues: int | None, perm: str | None, cluster: Target) -> None:
    """Change a topic; settings that are not given stay.

    With fewer queues than before, the messages in the others stay and are not read.
    """
    wanted = int(perm) if perm else None
    ask(
        cluster,
        lambda admin: admin_topics.update(admin, name, queues=queues, perm=wanted),
    )
    click.echo(f"topic {name} updated")


@topic.command(
    epilog=example(
        "ropeway topic compaction prices", "ropeway topic compaction prices --now"
    )
)
@topic_argument
@click.option("--now", is_flag=True, help="Compact first, and wait until it is done.")
@cluster_options
@json_option(list[CompactedQueue])
def compaction(topic: str, now: bool, cluster: Target, as_json: bool) -> None:
    """Print how far compaction of each queue of a topic is.

    It is for topics with the attribute cleanup.policy=COMPACTION.
    """
    found = ask(cluster, lambda admin: admin.compaction(topic, force=now))
    rows = [
        CompactedQueue(
            broker=broker.broker_name,
            queue_id=one.queue_id,
            clean_end=one.clean_end,
            end=one.end,
            messages=one.messages,
            bytes=one.bytes,
            problem=one.problem or "",
        )
        for broker in found
        for one in broker.queues
    ]
    print_rows(rows, as_json=as_json)


@topic.command(epilog=example("ropeway topic expand orders --queues 32"))
@topic_argument
@click.option(
    "--queues",
    type=click.IntRange(1, 1024),
    required=True,
    help="Queues on each broker; more than there are.",
)
@cluster_options
def expand(topic: str, queues: int, cluster: Target) -> None:
    """Add queues to a topic, on every broker that has it.

    They come behind the others, whose messages stay where they are.
    """
    grown = ask(cluster, lambda admin: admin_topics.expand(admin, topic, queues))
    for broker, (before, after) in grown.items():
        click.echo(f"topic {topic}: {before} -> {after} queues on broker {broker}")


@topic.command(epilog=example("ropeway topic delete orders --yes"))
@click.argument("name", shell_complete=topic_names)
@destructive_options
@cluster_options
def delete(name: str, consent: Consent, cluster: Target) -> None:
    """Delete a topic with its messages and every group's offsets in it."""
    if name not in ask(cluster, Admin.topics):
        raise CannotError(f"topic {name!r} does not exist")
    if consent.to(f"delete topic {name} with all its messages"):
        ask(cluster, lambda admin: admin.delete_topic(name))
        click.echo(f"topic {name} deleted")
