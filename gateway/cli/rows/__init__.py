"""What commands print as JSON: a `Row` for each kind of thing, and no other names.

`ropeway schema` prints the schema that follows from these structs, and `meanings` says
what each member means: a name means the same everywhere.
"""

from __future__ import annotations

from msgspec import Struct


class Row(Struct, frozen=True, kw_only=True):
    """A line of a table, or an object of JSON; columns and members have one name."""


class Planned(Row, frozen=True):
    """What a command would do, with --dry-run."""

    would: str
