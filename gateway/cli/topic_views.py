"""The part of `ropeway topic` that looks and changes nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click
from msgspec import structs

from ropeway.client import TopicNotFoundError, admin_groups, admin_topics
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.names import matching, names_option
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.topics import (
    BrokerTopic,
    GroupLag,
    QueueSpan,
    TopicDescription,
    TopicRow,
    TopicShown,
    TopicStats,
)
from ropeway.gateway.cli.times import time_text
from ropeway.gateway.node.names import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    is_listed_group,
    is_system_topic,
    reply_topic,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

    from ropeway.client import Admin, lags
    from ropeway.gateway.cli.target import Target
    from ropeway.gateway.wire.bodies import TopicConfig

name_argument = click.argument("name", shell_complete=topic_names)


@click.command(
    "list",
    epilog=example(
        "ropeway topic list",
        "ropeway topic list --names 'orders.*' --sizes",
        "ropeway topic list --lag",
    ),
)
@click.option(
    "--all", "everything", is_flag=True, help="Also those that are not users'."
)
@names_option
@click.option(
    "--sizes", is_flag=True, help="With queues, messages, and how much is sent."
)
@click.option(
    "--lag", "with_lag", is_flag=True, help="With the lag of all groups, largest first."
)
@cluster_options
@json_option(list[TopicRow])
def list_(
    everything: bool,
    pattern: re.Pattern[str] | None,
    sizes: bool,
    with_lag: bool,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print the names of topics."""

    async def look(admin: Admin) -> list[TopicRow]:
        known = await (admin.topics() if everything else users_topics(admin))
        names = matching(known, pattern)
        rows = [TopicRow(topic=name) for name in names]
        if sizes:
            found = [await size_of(admin, name) for name in names]
            rows = [row for row in found if row is not None]
        return await _with_lags(admin, rows) if with_lag else rows

    print_rows(ask(cluster, look), as_json=as_json)


async def _with_lags(admin: Admin, rows: list[TopicRow]) -> list[TopicRow]:
    """Topics with what all groups together have not read of each, most first."""
    lags: Counter[str] = Counter()
    for group in filter(is_listed_group, await admin.groups()):
        for one in await admin.describe_group(group):
            lags[one.queue.topic] += one.lag
    found = [structs.replace(row, lag=lags[row.topic]) for row in rows]
    return sorted(found, key=lambda row: (-lags[row.topic], row.topic))


async def size_of(admin: Admin, name: str) -> TopicRow | None:
    """A topic with its size and its rate; None where there is none of the name.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    try:
        found = await _stats(admin, name)
    except TopicNotFoundError:
        # It is the broker's or cluster's own name, or was deleted meanwhile.
        return None
    return TopicRow(
        topic=name,
        queues=len(found.queues),
        messages=found.messages,
        approx_bytes=found.approx_bytes,
        in_per_s=found.in_per_s,
        in_bytes_per_s=found.in_bytes_per_s,
        in_last_hour=found.in_last_hour,
        newest=max((one.newest for one in found.queues), default=""),
    )


async def users_topics(admin: Admin) -> list[str]:
    """The names of all topics but the system's and those of groups.

    Raises:
        RemotingError: No name server answers.
    """
    clusters = await admin.clusters()
    known = {*clusters, *(broker for one in clusters.values() for broker in one)}
    known |= {reply_topic(cluster) for cluster in clusters}
    return [
        name
        for name in await admin.topics()
        if not (name in known or _is_derived(name))
    ]


def _is_derived(name: str) -> bool:
    return is_system_topic(name) or name.startswith((RETRY_PREFIX, DLQ_PREFIX))


@click.command(epilog=example("ropeway topic show orders"))
@name_argument
@cluster_options
@json_option(TopicShown)
def show(name: str, cluster: Target, as_json: bool) -> None:
    """Print how a topic is set up on each broker, and which groups consume it."""

    async def look(admin: Admin) -> TopicShown:
        return TopicShown(
            topic=name,
            brokers=setup_rows(name, await admin_topics.configs(admin, name)),
            groups=await admin_groups.groups_of(admin, name),
        )

    found = ask(cluster, look)
    if as_json:
        print_json(found)
        return
    print_rows(found.brokers, as_json=False)
    click.echo(f"groups: {', '.join(found.groups) or 'none'}")


def setup_rows(name: str, configs: Mapping[str, TopicConfig]) -> list[BrokerTopic]:
    """Say how each broker has a topic set up."""
    return [
        BrokerTopic(
            topic=name,
            broker=broker,
            read_queues=config.read_queue_nums,
            write_queues=config.write_queue_nums,
            perm=config.perm,
            order=config.order,
            attributes=config.attributes,
        )
        for broker, config in configs.items()
    ]


@click.command(epilog=example("ropeway topic stats orders"))
@name_argument
@cluster_options
@json_option(TopicStats)
def stats(name: str, cluster: Target, as_json: bool) -> None:
    """Print what each queue of a topic holds, and how much is sent to it."""
    found = ask(cluster, lambda admin: _stats(admin, name))
    if as_json:
        print_json(found)
        return
    _print_stats(found)


async def _stats(admin: Admin, name: str) -> TopicStats:
    spans = await admin_topics.stats(admin, name)
    rate = await admin_topics.put_rate(admin, name)
    in_bytes = await admin_topics.put_bytes(admin, name)
    messages = sum(span.end - span.begin for span in spans)
    return TopicStats(
        topic=name,
        messages=messages,
        approx_bytes=admin_topics.approximate_bytes(
            messages, rate.last_day, in_bytes.last_day
        ),
        in_per_s=rate.per_s,
        in_bytes_per_s=in_bytes.per_s,
        in_last_hour=rate.last_hour,
        in_last_day=rate.last_day,
        queues=span_rows(spans),
    )


def span_rows(spans: Iterable[lags.QueueSpan]) -> list[QueueSpan]:
    """Say what queues hold."""
    return [
        QueueSpan(
            broker=span.queue.broker_name,
            queue_id=span.queue.queue_id,
            begin=span.begin,
            end=span.end,
            messages=span.end - span.begin,
            newest=time_text(span.newest_ms) if span.newest_ms else "",
        )
        for span in spans
    ]


def _print_stats(found: TopicStats) -> None:
    print_rows(found.queues, as_json=False)
    size = "unknown" if found.approx_bytes is None else f"~{found.approx_bytes}"
    click.echo(
        f"{found.messages} messages, {size} bytes; "
        f"{found.in_per_s:g} sent a second, with {found.in_bytes_per_s:g} bytes; "
        f"{found.in_last_hour} in the last hour, {found.in_last_day} in the last day"
    )


@click.command(epilog=example("ropeway topic describe orders"))
@name_argument
@cluster_options
@json_option(TopicDescription)
def describe(name: str, cluster: Target, as_json: bool) -> None:
    """Print a topic's set-up, its queues, and its groups with their lag."""

    async def look(admin: Admin) -> TopicDescription:
        return TopicDescription(
            **structs.asdict(await _stats(admin, name)),
            brokers=setup_rows(name, await admin_topics.configs(admin, name)),
            groups=[
                await _group_lag(admin, group, name)
                for group in await admin_groups.groups_of(admin, name)
            ],
        )

    found = ask(cluster, look)
    if as_json:
        print_json(found)
        return
    print_rows(found.brokers, as_json=False)
    click.echo()
    _print_stats(found)
    click.echo()
    print_rows(found.groups, as_json=False)


async def _group_lag(admin: Admin, group: str, topic: str) -> GroupLag:
    lags = await admin.describe_group(group)
    lag = sum(one.lag for one in lags if one.queue.topic == topic)
    return GroupLag(
        group=group,
        lag=lag,
        approx_lag_bytes=await admin_topics.lag_bytes(admin, topic, lag),
    )
