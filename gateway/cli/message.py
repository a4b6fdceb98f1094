"""`ropeway message`: find stored messages, send them, and send them again."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import click

from ropeway.client import admin_messages, admin_traces
from ropeway.client.admin import MAX_TIME_MS
from ropeway.client.errors import TopicNotFoundError
from ropeway.client.subscription import parse
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_argument, topic_names
from ropeway.gateway.cli.dlq import dlq
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.output import (
    FORMAT_NAMES,
    known_template,
    message_row,
    print_message,
    print_rows,
)
from ropeway.gateway.cli.produce import produce
from ropeway.gateway.cli.resend import resend
from ropeway.gateway.cli.rows.messages import MessageRow, TraceStep
from ropeway.gateway.cli.tail import tail
from ropeway.gateway.cli.times import past_ms, time_text
from ropeway.gateway.wire.trace import TRACE_TOPIC

if TYPE_CHECKING:
    from ropeway.client import Admin, ReceivedMessage
    from ropeway.gateway.cli.target import Target
    from ropeway.gateway.wire.trace import Step

topic_option = click.option(
    "--topic", help="Its topic, where it is known.", shell_complete=topic_names
)
format_option = click.option(
    "--format",
    "template",
    callback=known_template,
    default="{store_time} {queue_id} {offset} {msg_id} {tag} {body}",
    show_default=True,
    help=f"Names in braces: {FORMAT_NAMES}.",
)


def _past(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """A moment, or how long ago it is."""
    return None if text is None else past_ms(text)


@click.group(epilog=example("ropeway message query orders order-7"))
def message() -> None:
    """Find stored messages, send them, and send them again."""


send = copy.copy(produce)
"""The same under another name."""
send.epilog = example("ropeway message send orders 'one coffee' --tag paid")
message.add_command(send, "send")
for command in (tail, resend, dlq):
    message.add_command(command)


@message.command(
    epilog=example("ropeway message view 7F000001000026940000000000000007")
)
@click.argument("msg_id")
@topic_option
@cluster_options
@json_option(MessageRow)
def view(msg_id: str, topic: str | None, cluster: Target, as_json: bool) -> None:
    """Print the message with an id: of its place, or with --topic its producer's."""
    found = ask(cluster, lambda admin: admin_messages.find(admin, msg_id, topic))
    _print(found, as_json=as_json)


@message.command(epilog=example("ropeway message latest prices apple"))
@topic_argument
@click.argument("key")
@cluster_options
@json_option(MessageRow)
def latest(topic: str, key: str, cluster: Target, as_json: bool) -> None:
    """Print the newest message of TOPIC with KEY.

    The topic has the attribute cleanup.policy=COMPACTION, and KEY is all of the
    message's keys.
    """
    found = ask(cluster, lambda admin: admin.latest(topic, key))
    if found is None:
        raise CannotError(f"topic {topic} has no message with the key {key}")
    _print(found, as_json=as_json)


@message.command(
    epilog=example(
        "ropeway message query orders order-7",
        "ropeway message query orders 7F00000100002694000000000000000A --unique",
    )
)
@topic_argument
@click.argument("key")
@click.option("--unique", is_flag=True, help="KEY is a message id from a producer.")
@click.option("--count", type=click.IntRange(1), default=32, show_default=True)
@cluster_options
@json_option(MessageRow, is_lines=True)
def query(
    topic: str, key: str, unique: bool, count: int, cluster: Target, as_json: bool
) -> None:
    """Print the messages of TOPIC that have KEY."""
    found = ask(
        cluster,
        lambda admin: admin.query(topic, key, max_messages=count, is_unique_key=unique),
    )
    if not found:
        raise CannotError(f"topic {topic} has no message with key {key}")
    for one in found:
        _print(one, as_json=as_json)


@message.command(
    epilog=example("ropeway message trace 7F00000100002694000000000000000A")
)
@click.argument("msg_id")
@click.option(
    "--trace-topic",
    default=TRACE_TOPIC,
    show_default=True,
    help="Where clients write traces.",
)
@cluster_options
@json_option(list[TraceStep])
def trace(msg_id: str, trace_topic: str, cluster: Target, as_json: bool) -> None:
    """Print what clients wrote down that they did with a message, oldest first.

    MSG_ID is the id of its producer. Clients write traces where that is switched on
    in them.
    """

    async def look(admin: Admin) -> list[Step]:
        try:
            return await admin_traces.trace(admin, msg_id, trace_topic=trace_topic)
        except TopicNotFoundError:
            return []

    if not (found := ask(cluster, look)):
        raise CannotError(
            f"no client wrote a trace of message {msg_id} to topic {trace_topic}"
        )
    print_rows([_step(one) for one in found], as_json=as_json)


def _step(step: Step) -> TraceStep:
    return TraceStep(
        time="" if step.time_ms is None else time_text(step.time_ms),
        step=step.kind,
        group=step.group,
        result={True: "ok", False: "failed", None: None}[step.ok],
        took_ms=step.cost_ms,
        retried=step.retries,
    )


@message.command(
    epilog=example(
        "ropeway message search orders --from 2026-11-22T08:00:00 --tag paid",
        "ropeway message search orders --from 10m --count 1000 --output json",
    )
)
@topic_argument
@click.option(
    "--from",
    "begin_ms",
    callback=_past,
    default="1h",
    show_default=True,
    metavar="TIME|DURATION",
    help="Stored then or later, or so long ago at most.",
)
@click.option(
    "--until", "end_ms", callback=_past, metavar="TIME|DURATION", help="Not later."
)
@click.option("--tag", "expression", default="*", help="Tags, like 'a || b'.")
@click.option("--count", type=click.IntRange(1), default=100, show_default=True)
@format_option
@cluster_options
@json_option(MessageRow, is_lines=True)
def search(
    topic: str,
    begin_ms: int,
    end_ms: int | None,
    expression: str,
    count: int,
    template: str,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print the messages of TOPIC that were stored in a time, oldest first."""
    wanted = parse(topic, expression, 0)

    async def look(admin: Admin) -> None:
        left = count
        found = admin_messages.by_time(
            admin, topic, begin_ms, MAX_TIME_MS if end_ms is None else end_ms
        )
        async for one in found:
            if wanted.wants(one.tags):
                print_message(one, template, as_json=as_json)
                left -= 1
            if not left:
                return

    ask(cluster, look)


def _print(found: ReceivedMessage, *, as_json: bool) -> None:
    if as_json:
        print_message(found, "", as_json=True)
        return
    for name, value in message_row(found).items():
        click.echo(f"{name}: {value}")
    for name, value in sorted(found.properties.items()):
        click.echo(f"property {name}: {value}")
    click.echo()
