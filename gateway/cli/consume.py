"""`ropeway consume`: receive messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from ropeway.client import ConsumeFrom, PullConsumer, ResponseError
from ropeway.client.subscription import parse
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.delimiters import delimiter_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.cli.output import FORMAT_NAMES, known_template, print_message
from ropeway.gateway.cli.rows.messages import MessageRow
from ropeway.gateway.cli.times import Seconds, past_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.client import MessageQueue, ReceivedMessage
    from ropeway.gateway.cli.target import Target

_OWN_GROUP = "ropeway-cli"
"""The group of readers that leave no trace: they never store an offset."""

_POLL_S = 1.0
_POLL_COUNT = 32


class Start(NamedTuple):
    """Where to start on queues for which the group has no offset."""

    where: ConsumeFrom
    time_ms: int = 0
    offset: int | None = None
    """Start here instead; a negative one counts from the end of each queue."""


def _start(_: click.Context, __: click.Parameter, text: str | None) -> Start | None:
    if text is None:
        return None
    if text == "first":
        return Start(ConsumeFrom.FIRST_OFFSET)
    if text == "last":
        return Start(ConsumeFrom.LAST_OFFSET)
    return Start(ConsumeFrom.TIMESTAMP, past_ms(text, "first, last, "))


@click.command(
    epilog=example(
        "ropeway consume orders --count 10",
        "ropeway consume orders --group kitchen --tag 'paid || free' --follow",
        "ropeway consume orders --offset -10 --exit-at-end --raw",
    )
)
@click.argument("topic")
@click.option("--group", help="Consume in this group: start at its offset, and commit.")
@click.option("--tag", "expression", default="*", help="Tags, like 'a || b'.")
@click.option(
    "--from",
    "start",
    callback=_start,
    metavar="first|last|TIME|DURATION",
    help="Where to start on queues for which the group has no offset; first if not "
    "given. A duration like 10m is so long ago.",
)
@click.option(
    "--offset",
    type=int,
    help="Start each queue at this offset; -10 is ten before its end. Without --group.",
)
@click.option("--count", type=click.IntRange(1), help="Stop after so many messages.")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(),
    default=5.0,
    show_default=True,
    help="Stop when nothing came for so many seconds; 0: at the end of what is there.",
)
@click.option("--exit-at-end", is_flag=True, help="Short for --timeout 0.")
@click.option("--follow", is_flag=True, help="Wait for further messages until Ctrl-C.")
@click.option(
    "--format",
    "template",
    callback=known_template,
    help=f"Names in braces: {FORMAT_NAMES}; {{body}} if not given.",
)
@click.option("--raw", is_flag=True, help="Print the bytes of bodies and nothing else.")
@click.option("--hex", "as_hex", is_flag=True, help="Print bodies in hexadecimal.")
@delimiter_option("With --raw: print this after each body.")
@cluster_options
@json_option(MessageRow, is_lines=True)
def consume(
    topic: str,
    group: str | None,
    expression: str,
    start: Start | None,
    offset: int | None,
    count: int | None,
    timeout_s: float,
    exit_at_end: bool,
    follow: bool,
    template: str | None,
    raw: bool,
    as_hex: bool,
    delimiter: bytes | None,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print the messages of TOPIC, each on a line.

    Without --group it reads all queues and leaves no trace. With --count, fewer
    messages are an error.
    """
    timeout_s = 0 if exit_at_end else timeout_s
    if not timeout_s and group is not None:
        name = "--exit-at-end" if exit_at_end else "--timeout 0"
        raise MisusedError(f"{name} is for reading without --group")
    if offset is not None and (group is not None or start is not None):
        raise MisusedError("--offset is for reading without --group and --from")
    begin = start or Start(ConsumeFrom.FIRST_OFFSET, offset=offset)
    show = _printer(template, delimiter, raw=raw, as_hex=as_hex, as_json=as_json)

    async def receive() -> None:
        wanted = parse(topic, expression, 0)
        consumer = cluster.pull_consumer(
            group or _OWN_GROUP,
            consume_from=begin.where,
            consume_from_ms=begin.time_ms,
            auto_commit=group is not None,
        )
        if group is not None:
            consumer.subscribe(topic, expression)
        async with consumer:
            ends = {} if group else await read_all(consumer, topic, begin)
            left = count
            while left != 0:
                # What a poll gives counts as done, so it gets no more than is shown.
                most = _POLL_COUNT if left is None else min(left, _POLL_COUNT)
                wait_s = _POLL_S if follow or not timeout_s else timeout_s
                found = await consumer.poll(wait_s, most)
                shown = [message for message in found if wanted.wants(message.tags)]
                for message in shown:
                    show(message)
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


def _printer(
    template: str | None,
    delimiter: bytes | None,
    *,
    raw: bool,
    as_hex: bool,
    as_json: bool,
) -> Callable[[ReceivedMessage], None]:
    """What prints a message; `--raw`, `--hex` and `--format` are stronger than JSON."""
    ways = {"--raw": raw, "--hex": as_hex, "--format": template is not None}
    chosen = [name for name, is_given in ways.items() if is_given]
    if len(chosen) > 1:
        raise MisusedError(f"{' and '.join(chosen)} are given; allowed: one")
    if delimiter is not None and not raw:
        raise MisusedError("--delimiter is given without --raw")
    if raw:
        end = delimiter or b""
        return lambda message: click.echo(message.body + end, nl=False)
    if as_hex:
        return lambda message: click.echo(message.body.hex())
    as_json = as_json and template is None
    return partial(print_message, template=template or "{body}", as_json=as_json)


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


async def read_all(
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
        if start.offset is not None:
            first = await consumer.begin_offset(queue)
            wanted = start.offset + (ends[queue] if start.offset < 0 else 0)
            await consumer.seek(queue, min(max(first, wanted), ends[queue]))
        elif start.where is ConsumeFrom.LAST_OFFSET:
            await consumer.seek(queue, ends[queue])
        elif start.where is ConsumeFrom.TIMESTAMP:
            offset = await consumer.offset_for_timestamp(queue, start.time_ms)
            await consumer.seek(queue, offset)
    return ends
