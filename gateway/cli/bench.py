"""`ropeway bench`: how fast messages are sent and received, and how late they are."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from ropeway.client import ConsumeFrom
from ropeway.gateway.cli import loads
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_argument
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.loads import Load, Sends
from ropeway.gateway.cli.output import print_json, progress
from ropeway.gateway.cli.rows.loads import Measured
from ropeway.gateway.cli.times import Seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ropeway.gateway.cli.loads import Outcome
    from ropeway.gateway.cli.target import Target

_COUNT = 10_000
_MIB = 1024 * 1024
_BAR = 40
_STEPS = 100


@click.group(epilog=example("ropeway bench produce orders --size 1024 --in-flight 32"))
def bench() -> None:
    """Measure how fast messages are sent and received, and how late they are."""


def _load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--clients",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Clients, each with its own connections.",
        ),
        click.option(
            "--duration",
            "seconds",
            type=Seconds(is_open=True),
            help="Stop after so long.",
        ),
        click.option(
            "--count",
            type=click.IntRange(1),
            help=f"Stop after so many messages; {_COUNT} without --duration.",
        ),
    ):
        command = option(command)
    return command


@bench.command(
    epilog=example(
        "ropeway bench produce orders --count 100000 --in-flight 64",
        "ropeway bench produce orders --rate 500 --duration 60 --size 1024",
    )
)
@topic_argument
@_load_options
@click.option(
    "--size",
    type=click.IntRange(1, 4 * _MIB),
    default=128,
    show_default=True,
    help="Bytes of each body.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Send so many messages in one request.",
)
@click.option(
    "--in-flight",
    type=click.IntRange(1, 10_000),
    default=16,
    show_default=True,
    help="Requests that each client has under way.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="So many messages a second, of all clients; as many as can be if not given.",
)
@cluster_options
@json_option(Measured)
def produce(
    topic: str,
    count: int | None,
    seconds: float | None,
    clients: int,
    size: int,
    batch: int,
    in_flight: int,
    rate: float | None,
    cluster: Target,
    as_json: bool,
) -> None:
    """Send messages to TOPIC, and print the rate and the latency of requests.

    With --rate, a latency counts from when the request was due, and not from when it
    could be sent.
    """
    load = _load(topic, count, seconds, clients)
    sends = Sends(size, batch, in_flight, rate)
    with _progress("sending", load) as step:
        found = run(cluster, loads.produce(cluster, load, sends, step))
    _show(found, load, as_json=as_json, in_flight=in_flight)


@bench.command(
    epilog=example(
        "ropeway bench consume orders",
        "ropeway bench consume orders --from last --duration 60",
    )
)
@topic_argument
@_load_options
@click.option(
    "--from",
    "start",
    type=click.Choice(["first", "last"]),
    default="first",
    show_default=True,
    help="Begin at the oldest messages, or wait for new ones.",
)
@click.option(
    "--timeout",
    "wait_s",
    type=Seconds(is_open=True),
    default=5.0,
    show_default=True,
    help="Stop when nothing came for so long.",
)
@cluster_options
@json_option(Measured)
def consume(
    topic: str,
    count: int | None,
    seconds: float | None,
    clients: int,
    start: str,
    wait_s: float,
    cluster: Target,
    as_json: bool,
) -> None:
    """Receive messages of TOPIC, and print the rate and how old they are.

    Each client reads all queues, and commits no offset. An age counts from when the
    producer made the message, by the clocks of both machines.
    """
    load = _load(topic, count, seconds, clients)
    where = ConsumeFrom.FIRST_OFFSET if start == "first" else ConsumeFrom.LAST_OFFSET
    with _progress("receiving", load) as step:
        found = run(cluster, loads.consume(cluster, load, where, wait_s, step))
    _show(found, load, as_json=as_json)
    if not found.messages:
        raise CannotError(f"no message came within {wait_s:g} s")


def _load(topic: str, count: int | None, seconds: float | None, clients: int) -> Load:
    return Load(
        topic, _COUNT if count is None and seconds is None else count, seconds, clients
    )


@contextmanager
def _progress(what: str, load: Load) -> Iterator[Callable[[int], None]]:
    """Show progress by a hundred steps, so that it costs little."""
    a_step = max(1, (load.messages or _COUNT) // _STEPS)
    left = a_step
    with progress(what, _STEPS if load.messages else None) as advance:

        def step(count: int) -> None:
            nonlocal left
            left -= count
            while left <= 0:
                left += a_step
                advance()

        yield step


def _show(
    found: Outcome, load: Load, *, as_json: bool, in_flight: int | None = None
) -> None:
    latencies, seconds = found.latencies, found.seconds or 1e-9
    measured = Measured(
        topic=load.topic,
        messages=found.messages,
        failed=found.failed,
        bytes=found.bytes,
        seconds=round(found.seconds, 3),
        messages_per_s=round(found.messages / seconds, 1),
        mib_per_s=round(found.bytes / seconds / _MIB, 3),
        clients=load.clients,
        mean_ms=round(latencies.mean_ms, 3),
        min_ms=round(latencies.least_ms, 3) if latencies.count else 0.0,
        p50_ms=round(latencies.percentile_ms(0.5), 3),
        p99_ms=round(latencies.percentile_ms(0.99), 3),
        p99_9_ms=round(latencies.percentile_ms(0.999), 3),
        max_ms=round(latencies.most_ms, 3),
        in_flight=UNSET if in_flight is None else in_flight,
    )
    if as_json:
        print_json(measured)
        return
    click.echo(
        f"{measured.messages} messages, {measured.failed} failed, in "
        f"{measured.seconds:g} s: {measured.messages_per_s:g} a second, "
        f"{measured.mib_per_s:g} MiB a second"
    )
    click.echo(
        f"latency in ms: mean {measured.mean_ms:g}, min {measured.min_ms:g}, "
        f"p50 {measured.p50_ms:g}, p99 {measured.p99_ms:g}, "
        f"p99.9 {measured.p99_9_ms:g}, max {measured.max_ms:g}"
    )
    bars = latencies.bars()
    most = max((count for _, count in bars), default=0)
    for until_ms, count in bars:
        bar = "#" * -(-count * _BAR // most)
        click.echo(f"{until_ms:>10g} ms  {count:>9}  {bar}")
