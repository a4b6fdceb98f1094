"""`ropeway message tail`: the newest messages of a topic, and what comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client.admin_messages import READER_GROUP
from ropeway.client.subscription import parse
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_argument
from ropeway.gateway.cli.consume import raise_refusal
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import FORMAT_NAMES, known_template, print_message
from ropeway.gateway.cli.rows.messages import MessageRow

if TYPE_CHECKING:
    from ropeway.client import PullConsumer
    from ropeway.gateway.cli.target import Target

_POLL_S = 1.0


@click.command(
    epilog=example(
        "ropeway message tail orders", "ropeway message tail orders --last 0 --count 5"
    )
)
@topic_argument
@click.option(
    "--last",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Begin so many messages before the end of each queue.",
)
@click.option("--tag", "expression", default="*", help="Tags, like 'a || b'.")
@click.option("--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option(
    "--format",
    "template",
    callback=known_template,
    default="{store_time} {queue_id} {offset} {msg_id} {tag} {body}",
    show_default=True,
    help=f"Names in braces: {FORMAT_NAMES}.",
)
@cluster_options
@json_option(MessageRow, is_lines=True)
def tail(
    topic: str,
    last: int,
    expression: str,
    count: int | None,
    template: str,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print the newest messages of TOPIC and those that come, until Ctrl-C.

    It leaves no trace: no group's offsets are changed.
    """
    wanted = parse(topic, expression, 0)

    async def follow() -> None:
        left = count
        consumer = cluster.pull_consumer(READER_GROUP, auto_commit=False)
        async with consumer:
            await _begin(consumer, topic, last)
            while left != 0:
                for one in await consumer.poll(_POLL_S):
                    if left == 0 or not wanted.wants(one.tags):
                        continue
                    print_message(one, template, as_json=as_json)
                    if left is not None:
                        left -= 1
                raise_refusal(consumer)

    run(cluster, follow())


async def _begin(consumer: PullConsumer, topic: str, last: int) -> None:
    queues = await consumer.queues(topic)
    await consumer.assign(queues)
    for queue in queues:
        end = await consumer.end_offset(queue)
        begin = await consumer.begin_offset(queue)
        await consumer.seek(queue, max(begin, end - last))
