"""`ropeway streams top`: running queries as consumers, with plots of their batches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ropeway.client import admin_clients, admin_groups
from ropeway.client.admin_groups import SilentClientError
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import members, print_json
from ropeway.gateway.cli.rows.queries import QueryBatch, QueryRow
from ropeway.gateway.cli.tables import print_table
from ropeway.gateway.cli.watch import by_itself_options, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client import Admin
    from ropeway.client.admin_clients import ClientGroup
    from ropeway.client.running_queries import Batch, Query
    from ropeway.gateway.cli.target import Target

_RECENT_MS = 60_000
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=+*%#"
_PLOTS = {
    "rows in": "rows_in",
    "rows out": "rows_out",
    "batch ms": "batch_ms",
    "lag": "lag",
}


@click.command(
    "top",
    epilog=example("ropeway streams top", "ropeway streams top --group kitchen --once"),
)
@click.option("--group", help="Only this group's.", shell_complete=group_names)
@by_itself_options
@cluster_options
@json_option(list[QueryRow], is_lines=True)
def top(
    group: str | None, watch_s: float, once: bool, cluster: Target, as_json: bool
) -> None:
    """Print running queries of Spark, with plots of their last batches.

    They are those with the option `group`, which makes them a consumer of it.
    """

    def show() -> None:
        rows = ask(cluster, lambda admin: _running(admin, group))
        if as_json:
            print_json(rows)
        elif rows:
            _print(rows)
        else:
            click.echo("no query runs that has the option group")

    watched(show, None if once else watch_s, None)


async def _running(admin: Admin, group: str | None) -> list[QueryRow]:
    names = await admin.groups() if group is None else [group]
    found: list[QueryRow] = []
    for name in names:
        joined = await admin_groups.membership(admin, name)
        for one in sorted(admin_clients.members(name, joined)):
            found += await _of(admin, one)
    return found


async def _of(admin: Admin, one: ClientGroup) -> list[QueryRow]:
    """The queries of a consumer; most have none."""
    try:
        info = await admin_clients.consumption(admin, one)
    except SilentClientError:
        return []
    return [row(one, query) for query in (info.queries if info else ())]


def row(one: ClientGroup, query: Query) -> QueryRow:
    """Sum a query up.

    Args:
        one: The consumer that runs it.
        query: As that says.
    """
    batches = query.batches
    last = batches[-1] if batches else None
    return QueryRow(
        query=query.name,
        group=one.group,
        client_id=one.client_id,
        batch=None if last is None else last.number,
        rows_in_per_s=_rate(batches, lambda each: each.rows_in),
        rows_out_per_s=_rate(batches, lambda each: each.rows_out),
        batch_ms=None if last is None else last.took_ms,
        lag=None if last is None else last.lag,
        batches=[
            QueryBatch(
                ended_ms=each.ended_ms,
                batch=each.number,
                rows_in=each.rows_in,
                rows_out=each.rows_out,
                batch_ms=each.took_ms,
                lag=each.lag,
            )
            for each in batches
        ],
    )


def _rate(
    batches: Sequence[Batch], rows: Callable[[Batch], int | None]
) -> float | None:
    """Rows a second in the minute before the last batch's end; None if untold.

    It begins where the first of its batches did.
    """
    if not batches or rows(batches[-1]) is None:
        return None
    last_ms = batches[-1].ended_ms
    recent = [one for one in batches if one.ended_ms > last_ms - _RECENT_MS]
    began_ms = recent[0].ended_ms - recent[0].took_ms
    total = sum(rows(one) or 0 for one in recent)
    return round(1000 * total / max(1, last_ms - began_ms), 1)


def _print(rows: Sequence[QueryRow]) -> None:
    facts = [members(one) for one in rows]
    for one in facts:
        del one["batches"]
    print_table(facts)
    for each in rows:
        click.echo(f"\n{each.query}, {len(each.batches)} batches")
        for title, name in _PLOTS.items():
            values = [getattr(batch, name) for batch in each.batches]
            told = [value for value in values if value is not None]
            if told:
                click.echo(f"  {title.ljust(8)}  {bars(values)}  0 to {max(told)}")


def bars(values: Sequence[int | None]) -> str:
    """A plot of a line of text: a bar for each value, from 0 to the largest."""
    try:
        _BARS.encode(sys.stdout.encoding or "ascii")
        signs = _BARS
    except UnicodeEncodeError:
        signs = _PLAIN_BARS
    most = max((value for value in values if value is not None), default=0) or 1
    return "".join(
        " " if value is None else signs[value * (len(signs) - 1) // most]
        for value in values
    )
