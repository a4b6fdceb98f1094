"""`ropeway produce`: send messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import Message, Producer
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.delimiters import delimiter, delimiter_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_json
from ropeway.gateway.cli.pairs import pairs
from ropeway.gateway.cli.rows.messages import SentMessage
from ropeway.gateway.cli.sources import Source, of_one_queue
from ropeway.gateway.cli.target import ANSWER_S
from ropeway.gateway.cli.times import Seconds, time_ms

if TYPE_CHECKING:
    from ropeway.client import MessageQueue, SendResult
    from ropeway.gateway.cli.target import Target


def _time(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    return None if text is None else time_ms(text)


@click.command(
    epilog=example(
        "ropeway produce orders 'one coffee' --tag paid --key order-7",
        "ropeway produce orders --batch 100 < orders.txt",
        "ropeway produce orders --file order.bin --key order-7",
    )
)
@click.argument("topic")
@click.argument("message", required=False)
@click.option("--tag", help="The tag that consumers filter by.")
@click.option("--key", "keys", multiple=True, help="A key to find the message by.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A user property.",
)
@click.option(
    "--delay-level",
    type=click.IntRange(0),
    default=0,
    help="Deliver later: 1 to 18 are 1s 5s 10s 30s 1m ... 2h.",
)
@click.option(
    "--delay",
    "delay_s",
    type=Seconds(is_open=True),
    help="Deliver after this delay; days and years are fine.",
)
@click.option(
    "--deliver-at",
    "deliver_ms",
    callback=_time,
    metavar="TIME",
    help="Deliver then: milliseconds since 1970, or like 2027-01-31T12:00:00.",
)
@click.option("--queue", "queue_id", type=click.IntRange(0), help="To this queue.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=1,
    help="Send so many lines in one request.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Send this file's bytes as one message; - is all of the standard input.",
)
@delimiter_option("Split the standard input at this, and keep all else as it is.")
@click.option(
    "--key-delimiter",
    callback=delimiter,
    metavar="TEXT",
    help="Each message begins with its key and this.",
)
@click.option(
    "--input",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: each line is an object as `ropeway consume --json` prints it.",
)
@click.option("--group", default="ropeway-cli", show_default=True)
@cluster_options
@json_option(SentMessage, is_lines=True)
def produce(
    topic: str,
    message: str | None,
    tag: str | None,
    keys: tuple[str, ...],
    properties: dict[str, str],
    delay_level: int,
    delay_s: float | None,
    deliver_ms: int | None,
    queue_id: int | None,
    batch: int,
    files: tuple[str, ...],
    delimiter: bytes | None,
    key_delimiter: bytes | None,
    form: str,
    group: str,
    cluster: Target,
    as_json: bool,
) -> None:
    """Send MESSAGE to TOPIC, or files, or each line of the standard input.

    Prints the queue, the offset and the message id of each.
    """
    like = Message(
        topic,
        b"",
        tags=tag,
        keys=keys,
        delay_level=delay_level,
        properties=properties,
        deliver_ms=deliver_ms,
        delay_ms=int((delay_s or 0) * 1000),
    )
    source = Source(
        message=message,
        files=files,
        delimiter=delimiter,
        key_delimiter=key_delimiter,
        is_json=form == "json",
    )
    source.check()

    async def send() -> None:
        async with cluster.producer(group) as producer:
            queue = await _queue(producer, topic, queue_id)
            async for bodies in source.bodies(batch):
                messages = [source.made(body, like) for body in bodies]
                for some in [messages] if queue else of_one_queue(messages):
                    _show(await _sent(producer, some, queue), as_json)

    run(cluster, send())


async def _sent(
    producer: Producer, messages: list[Message], queue: MessageQueue | None
) -> list[SendResult]:
    if len(messages) == 1:
        return [await producer.send(messages[0], queue, timeout_s=ANSWER_S)]
    return await producer.send_batch(messages, queue, timeout_s=ANSWER_S)


async def _queue(
    producer: Producer, topic: str, queue_id: int | None
) -> MessageQueue | None:
    if queue_id is None:
        return None
    queues = await producer.queues(topic)
    for queue in queues:
        if queue.queue_id == queue_id:
            return queue
    allowed = ", ".join(str(queue.queue_id) for queue in queues)
    raise MisusedError(f"topic {topic} has no queue {queue_id}; allowed: {allowed}")


def sent_row(result: SendResult) -> SentMessage:
    """Where a message was stored."""
    return SentMessage(
        topic=result.queue.topic,
        broker=result.queue.broker_name,
        queue_id=result.queue.queue_id,
        offset=result.queue_offset,
        msg_id=result.msg_id,
        offset_msg_id=result.offset_msg_id,
        status=result.status.name,
        recall_handle=result.recall_handle,
    )


def _show(results: list[SendResult], as_json: bool) -> None:
    for result in results:
        if as_json:
            print_json(sent_row(result))
        else:
            click.echo(
                f"queue={result.queue.queue_id} offset={result.queue_offset} "
                f"msg_id={result.msg_id}"
                + (f" recall={result.recall_handle}" if result.recall_handle else "")
            )
