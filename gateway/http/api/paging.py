"""Pages of lists: which of the names that are wanted are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ropeway.gateway.http.params import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from ropeway.gateway.http.console import Console
    from ropeway.gateway.http.params import Params

NAMES = ("search", "offset", "limit")
"""The parameters that every list takes."""
SORT = "sort"
"""That of lists which are sorted by columns, too."""
MOST = 200
MOST_SORTED = 1000
"""Rows that are made to sort them by a column: some requests to brokers each."""
_USUAL = 50
_MOST_OFFSET = 10_000_000
_NAME = "name"

Row = dict[str, Any]


class Page(NamedTuple):
    """A part of a list."""

    total: int
    """How many there are."""
    offset: int
    names: list[str]


def page(params: Params, names: Iterable[str]) -> Page:
    """The names that are asked for: those with the searched text, in order."""
    found, offset, limit = _asked(params, names)
    return Page(len(found), offset, found[offset : offset + limit])


def _asked(params: Params, names: Iterable[str]) -> tuple[list[str], int, int]:
    """All names with the searched text, in order; and the page's offset and limit."""
    search = params.text("search", "").lower()
    offset = params.number("offset", 0, most=_MOST_OFFSET)
    limit = params.number("limit", _USUAL, least=1, most=MOST)
    if search:
        names = (name for name in names if search in name.lower())
    return sorted(names), offset, limit


async def rows(
    params: Params,
    names: Iterable[str],
    make: Callable[[str], Awaitable[Row | None]],
    console: Console,
    columns: Sequence[str],
    kind: str,
) -> Row:
    """A page of rows: by name, or by a column with the largest first.

    Where all rows are made anyway, `totals` has the sums of the columns.

    Args:
        params: What is asked for: `NAMES` and `SORT`.
        names: Those of all rows.
        make: Makes a row; None where it is gone meanwhile.
        console: Makes many at a time.
        columns: Of numbers, or None for unknown, which can be sorted by.
        kind: What rows are called in the answer.

    Raises:
        RefusedError: A column is to be sorted by, and the rows are too many.
    """
    sort = params.choice(SORT, (_NAME, *columns))
    found, offset, limit = _asked(params, names)
    here = slice(offset, offset + limit)
    if sort != _NAME and len(found) > MOST_SORTED:
        raise RefusedError(
            f"{len(found)} are too many to sort by {sort}; allowed: up to "
            f"{MOST_SORTED}, so search first"
        )
    every = sort != _NAME or len(found) <= limit
    made = await console.gather(map(make, found if every else found[here]))
    there = [one for one in made if one is not None]
    if not every:
        return {"total": len(found), "offset": offset, "totals": None, kind: there}
    if sort != _NAME:
        there.sort(key=lambda one: -(one[sort] or 0))
    return {
        "total": len(there),
        "offset": offset,
        "totals": {
            column: sum(one[column] or 0 for one in there) for column in columns
        },
        kind: there[here],
    }


async def kept(
    params: Params,
    names: Iterable[str],
    make: Callable[[str], Awaitable[Row | None]],
    console: Console,
    kind: str,
) -> Row:
    """A page of the rows that there are, by name; of many names, of the page's alone.

    Args:
        params: What is asked for: `NAMES`.
        names: Those that may have a row.
        make: Makes a row; None where there is none.
        console: Makes many at a time.
        kind: What rows are called in the answer.
    """
    found, offset, limit = _asked(params, names)
    here = slice(offset, offset + limit)
    if len(found) > MOST_SORTED:
        made = await console.gather(map(make, found[here]))
        rows = [one for one in made if one is not None]
        return {"total": len(found), "offset": offset, kind: rows}
    every = await console.gather(map(make, found))
    rows = [one for one in every if one is not None]
    return {"total": len(rows), "offset": offset, kind: rows[here]}
