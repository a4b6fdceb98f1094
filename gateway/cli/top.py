"""`ropeway top`: the busiest topics, groups and clients, again and again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import UNSET

from ropeway.client import admin_clients
from ropeway.client.admin_groups import SilentClientError
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.group_sizes import sized
from ropeway.gateway.cli.names import matching, names_option
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.loads import Busiest, ClientLoad
from ropeway.gateway.cli.topic_views import size_of, users_topics
from ropeway.gateway.cli.watch import by_itself_options, watched
from ropeway.gateway.node.names import is_listed_group

if TYPE_CHECKING:
    import re
    from collections.abc import Coroutine, Iterable
    from typing import Any

    from ropeway.client import Admin, MessageQueue
    from ropeway.client.admin_clients import ClientGroup
    from ropeway.gateway.cli.rows.groups import GroupRow
    from ropeway.gateway.cli.rows.topics import TopicRow
    from ropeway.gateway.cli.target import Target

T = TypeVar("T")

_AT_ONCE = 16
"""Questions that are asked of brokers at a time."""


@click.command(
    epilog=example(
        "ropeway top", "ropeway top clients --by rate", "ropeway top topics --once"
    )
)
@click.argument(
    "view", type=click.Choice(["topics", "groups", "clients"]), required=False
)
@click.option(
    "--by",
    type=click.Choice(["rate", "lag"]),
    help="Sort groups and clients by this; by lag if not given.",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Of each table.",
)
@names_option
@by_itself_options
@cluster_options
@json_option(Busiest, is_lines=True)
def top(
    view: str | None,
    by: str | None,
    rows: int,
    pattern: re.Pattern[str] | None,
    watch_s: float,
    once: bool,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print the busiest topics and groups, or VIEW alone, until Ctrl-C.

    Rates are those of the last minute.
    """

    async def look(admin: Admin) -> Busiest:
        return Busiest(
            topics=(await busiest_topics(admin, pattern))[:rows]
            if view in (None, "topics")
            else UNSET,
            groups=(await busiest_groups(admin, pattern, by))[:rows]
            if view in (None, "groups")
            else UNSET,
            clients=(await _clients(admin, pattern, by))[:rows]
            if view == "clients"
            else UNSET,
        )

    def show() -> None:
        found = ask(cluster, look)
        if as_json:
            print_json(found)
            return
        tables = [found.topics, found.groups, found.clients]
        for number, table in enumerate(one for one in tables if one):
            if number:
                click.echo()
            print_rows(table, as_json=False)

    watched(show, None if once else watch_s, None)


async def busiest_topics(
    admin: Admin, pattern: re.Pattern[str] | None
) -> list[TopicRow]:
    """Users' topics with their sizes, the one that most is sent to first.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    names = matching(await users_topics(admin), pattern)
    found = await _each(size_of(admin, name) for name in names)
    rows = [one for one in found if one is not None]
    return sorted(rows, key=lambda one: (-(one.in_per_s or 0.0), one.topic))


async def busiest_groups(
    admin: Admin, pattern: re.Pattern[str] | None, by: str | None = None
) -> list[GroupRow]:
    """Users' groups with their sizes, the largest first by lag, or by `rate`.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    names = [
        name
        for name in matching(await admin.groups(), pattern)
        if is_listed_group(name)
    ]
    rows = await _each(sized(admin, name, sizes=True) for name in names)

    def key(one: GroupRow) -> tuple[float, str]:
        return -((one.out_per_s if by == "rate" else one.lag) or 0), one.group

    return sorted(rows, key=key)


async def _clients(
    admin: Admin, pattern: re.Pattern[str] | None, by: str | None
) -> list[ClientLoad]:
    consumers = [
        one
        for one in await admin_clients.connected(admin)
        if one.role == admin_clients.CONSUMER
    ]
    names = set(matching({one.client_id for one in consumers}, pattern))
    wanted = [one for one in consumers if one.client_id in names]
    lags: dict[str, dict[MessageQueue, int]] = {
        group: {one.queue: one.lag for one in await admin.describe_group(group)}
        for group in sorted({one.group for one in wanted})
    }
    rows = await _each(_client(admin, one, lags[one.group]) for one in wanted)

    def key(one: ClientLoad) -> tuple[float, str]:
        return -((one.out_per_s if by == "rate" else one.lag) or 0), one.client_id

    return sorted(rows, key=key)


async def _client(
    admin: Admin, one: ClientGroup, lags: dict[MessageQueue, int]
) -> ClientLoad:
    try:
        info = await admin_clients.consumption(admin, one)
    except SilentClientError:
        info = None
    queues = None if info is None else [each.queue for each in info.queues]
    return ClientLoad(
        client_id=one.client_id,
        group=one.group,
        language=one.language,
        queues=None if queues is None else len(queues),
        lag=None if queues is None else sum(lags.get(each, 0) for each in queues),
        out_per_s=None
        if info is None
        else round(sum(each.consume_ok_tps for each in info.rates.values()), 2),
    )


async def _each(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all of some work, a little at a time, and give its results in order."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def limited(one: Coroutine[Any, Any, T]) -> T:
        async with limit:
            return await one

    return list(await asyncio.gather(*map(limited, work)))
