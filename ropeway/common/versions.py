"""The words by which a program refuses what a newer one has stored.

`docs/architecture/formats.md` lists every format, its version and its rule.
"""

from __future__ import annotations


def newer(where: object, found: object, newest: object) -> str:
    """Say that something stored has a newer format than this program reads.

    Args:
        where: The file, node or record, by a name that an operator finds.
        found: The version that it says.
        newest: The newest version that this program reads.
    """
    return (
        f"{where} has format {found}; this program reads up to {newest}: "
        "use a newer one"
    )
