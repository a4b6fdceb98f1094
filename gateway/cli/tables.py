"""Tables for people: whole cells in columns, of which a narrow terminal shows fewer."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEFT_OUT_FIRST = (
    *("cluster", "version", "took_ms", "in_bytes_per_s", "order", "attributes"),
    *("language", "type", "approx_lag_bytes", "approx_bytes"),
    *("average_per_s", "to_per_s", "from_per_s", "queue_per_s", "in_today"),
    *("out_today", "overdue_ms", "pulled", "done_until", "replayed", "tag", "keys"),
    *("offset_msg_id", "dead_since", "attempts", "throttled", "rank", "facts", "bytes"),
    *("slaves", "role", "deliver_at", "newest", "partitions", "in_last_hour"),
    *("out_last_hour", "topics"),
)
"""Columns that are left out where a table does not fit, in this order: what other
commands or other columns say as well comes first. Names, ids and states stay."""

_GAP = "  "


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with the same members as columns under their names.

    No cell is cut or broken. A pipe gets all columns; a terminal those that fit, and
    where they do not, a line for each member.
    """
    if not rows:
        return
    if not sys.stdout.isatty():
        _print_columns(rows, list(rows[0]))
        return
    limit = shutil.get_terminal_size().columns
    names = shown_columns(rows, limit)
    if _width(rows, names) > limit:
        _print_blocks(rows, names)
    else:
        _print_columns(rows, names)
    if left_out := [name for name in rows[0] if name not in names]:
        click.echo(
            f"left out: {', '.join(left_out)}; a wider terminal or --output json "
            "shows all",
            err=True,
        )


def shown_columns(rows: Sequence[Mapping[str, Any]], limit: int) -> list[str]:
    """The columns that are shown within a width, in letters."""
    names = list(rows[0])
    for name in LEFT_OUT_FIRST:
        if _width(rows, names) <= limit:
            break
        if name in names and len(names) > 1:
            names.remove(name)
    return names


def _widths(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[int]:
    return [max(len(name), *(len(str(row[name])) for row in rows)) for name in names]


def _width(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    return sum(_widths(rows, names)) + len(_GAP) * (len(names) - 1)


def _print_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    widths = _widths(rows, names)
    for cells in (names, *([str(row[name]) for name in names] for row in rows)):
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        click.echo(_GAP.join(padded).rstrip())


def _print_blocks(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    width = max(map(len, names))
    for number, row in enumerate(rows):
        if number:
            click.echo()
        for name in names:
            click.echo(f"{name.ljust(width)}{_GAP}{row[name]}".rstrip())
