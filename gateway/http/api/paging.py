"""Pages of lists: which of the names that are wanted are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.gateway.http.params import Params

NAMES = ("search", "offset", "limit")
"""The parameters that every list takes."""
MOST = 200
_USUAL = 50
_MOST_OFFSET = 10_000_000


class Page(NamedTuple):
    """A part of a list."""

    total: int
    """How many there are."""
    offset: int
    names: list[str]


def page(params: Params, names: Iterable[str]) -> Page:
    """The names that are asked for: those with the searched text, in order."""
    search = params.text("search", "").lower()
    offset = params.number("offset", 0, most=_MOST_OFFSET)
    limit = params.number("limit", _USUAL, least=1, most=MOST)
    if search:
        names = (name for name in names if search in name.lower())
    found = sorted(names)
    return Page(len(found), offset, found[offset : offset + limit])
