"""`ropeway consume`: receive messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from ropeway.client import ConsumeFrom, PullConsumer, ResponseError
from ropeway.client.subscription import parse
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.cli.output import FORMAT_NAMES, print_message
from ropeway.gateway.cli.times import time_ms

if TYPE_CHECKING:
    from ropeway.client import MessageQueue
    from ropeway.gateway.cli.target import Target

_OWN_GROUP = "ropeway-cli"
"""The group of readers that leave no trace: they never store an offset."""

_POLL_S = 1.0
_POLL_COUNT = 32


class Start(NamedTuple):
    """Where to start on queues for which the group has no offset."""

    where: ConsumeFrom
    time_ms: int = 0


def _start(_: click.Context, __: click.Parameter, text: str) -> Start:
    if text == "first":
        return Start(ConsumeFrom.FIRST_OFFSET)
    if text == "last":
        return Start(ConsumeFrom.LAST_OFFSET)
    return Start(ConsumeFrom.TIMESTAMP, time_ms(text, "first, last, "))


@click.command(
    epilog=example(
        "ropeway consume orders --count 10",
        "ropeway consume orders --group kitchen --tag 'paid || free' --follow",
    )
)
@click.argument("topic")
@click.option("--group", help="Consume in this group: start at its offset, and commit.")
@click.option("--tag", "expression", default="*", help="Tags, like 'a || b'.")
@click.option(
    "--from",
    "start",
    default="first",
    show_default=True,
    callback=_start,
    metavar="first|last|TIME",
    help="Where to start on queues for which the group has no offset.",
)
@click.option("--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    help="Stop when nothing came for so many seconds; 0: at the end of what is there.",
)
@click.option("--follow", is_flag=True, help="Wait for further messages until Ctrl-C.")
@click.option(
    "--format",
    "template",
    default="{body}",
    show_default=True,
    help=f"Names in braces: {FORMAT_NAMES}.",
)
@cluster_options
@json_option
def consume(
    topic: str,
    group: str | None,
    expression: str,
    start: Start,
    count: int | None,
    timeout_s: float,
    follow: bool,
    template: str,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print the messages of TOPIC, each on a line.

    Without --group it reads all queues and leaves no trace. With --count, fewer
    messages are an error.
    """
    if not timeout_s and group is not None:
        raise MisusedError("--timeout 0 is for reading without --group")

    async def receive() -> None:
        wanted = parse(topic, expression, 0)
        consumer = cluster.pull_consumer(
            group or _OWN_GROUP,
            consume_from=start.where,
            consume_from_ms=start.time_ms,
            auto_commit=group is not None,
        )
        if group is not None:
            consumer.subscribe(topic, expression)
        async with consumer:
            ends = {} if group else await _read_all(consumer, topic, start)
            left = count
            while left != 0:
                # What a poll gives counts as done, so it gets no more than is shown.
                most = _POLL_COUNT if left is None else min(left, _POLL_COUNT)
                wait_s = _POLL_S if follow or not timeout_s else timeout_s
                found = await consumer.poll(wait_s, most)
                shown = [message for message in found if wanted.wants(message.tags)]
                for message in shown:
                    print_message(message, template, as_json=as_json)
                left = left and left - len(shown)
                raise_refusal(consumer, all_failures=not timeout_s)
                at_end = timeout_s or not _is_behind(consumer, ends)
                if not found and not follow and at_end:
                    break
            if left and count:
                raise CannotError(
                    f"{count - left} of {count} messages came; none within the last "
                    f"{timeout_s:g} s"
                )

    run(cluster, receive())


def raise_refusal(consumer: PullConsumer, *, all_failures: bool = False) -> None:
    """Raise what a broker refuses reads with; other failures are tried again.

    Raises:
        ResponseError: It refuses.
        RemotingError: It cannot be reached, where all failures count.
    """
    failure = consumer.failure
    if failure and (all_failures or isinstance(failure, ResponseError)):
        raise failure


def _is_behind(consumer: PullConsumer, ends: dict[MessageQueue, int]) -> bool:
    """Whether a consumer has yet to come to these offsets."""
    return any(consumer.position(queue) < end for queue, end in ends.items())


async def _read_all(
    consumer: PullConsumer, topic: str, start: Start
) -> dict[MessageQueue, int]:
    """Read every queue, from where it was said; gives where they end now.

    A broker lets a group that it does not know begin at the first message of a young
    queue, whatever the group wants.
    """
    queues = await consumer.queues(topic)
    await consumer.assign(queues)
    ends = {queue: await consumer.end_offset(queue) for queue in queues}
    for queue in queues:
        if start.where is ConsumeFrom.LAST_OFFSET:
            await consumer.seek(queue, ends[queue])
        elif start.where is ConsumeFrom.TIMESTAMP:
            offset = await consumer.offset_for_timestamp(queue, start.time_ms)
            await consumer.seek(queue, offset)
    return ends
