"""What is known of mutants: results a line each, and those that are equivalent."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.mutants.cores import CORES
from scripts.mutants.operators import mutants

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scripts.mutants.operators import Mutant

Row = dict[str, Any]
LIVED = {"survived", "unreached"}
EQUIVALENT = Path(__file__).parent / "equivalent.toml"


def read(file: Path) -> dict[str, Row]:
    """The last result of each mutant, by its key."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


@cache
def equivalent() -> dict[tuple[str, str, str], str]:
    """The reasons of mutants that change no behaviour, by path and both texts."""
    entries = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    return {(one["path"], one["was"], one["becomes"]): one["why"] for one in entries}


def is_equivalent(row: Row) -> bool:
    """Whether a mutant is listed as one that changes nothing."""
    path, _, was, becomes, _ = row["key"].split("\t")
    return (path, was, becomes) in equivalent()


def current(root: Path, rows: Iterable[Row]) -> list[Row]:
    """The results of mutants that are still made of the sources."""
    return [row for row in rows if row["key"] in _of(root, row["path"])]


def surviving(rows: Iterable[Row]) -> list[Row]:
    """Mutants that lived and should not have."""
    return [row for row in rows if row["status"] in LIVED and not is_equivalent(row)]


@cache
def _of(root: Path, path: str) -> dict[str, Mutant]:
    file = root / path
    if not file.exists():
        return {}
    return {one.key: one for one in mutants(path, file.read_bytes())}


def told(root: Path, row: Row) -> str:
    """A survivor as people read it: where, what was asked, and the change."""
    head = f"# {row['core']} {row['path']}:{row['line']} {row['operator']}: "
    head += f"{row['status']}, tests: {row.get('tests', 0)}"
    mutant = _of(root, row["path"]).get(row["key"])
    if mutant is None:
        return f"{head}\n# the source has changed since: run it again"
    return f"{head}\n{mutant.diff((root / row['path']).read_bytes())}\n"


def table(rows: Iterable[Row]) -> str:
    """The figures of each core, in Markdown."""
    rows = list(rows)
    lines = [
        "| core | mutants | killed | equivalent | survivors | share that lives |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in [*CORES, "together"]:
        own = [row for row in rows if name in {row["core"], "together"}]
        if not own:
            continue
        lived = [row for row in own if row["status"] in LIVED]
        left = surviving(lived)
        same = len(lived) - len(left)
        share = 100 * len(left) / max(len(own) - same, 1)
        lines.append(
            f"| {name} | {len(own):,} | {len(own) - len(lived):,} | {same} "
            f"| {len(left)} | {share:.1f} % |"
        )
    return "\n".join(lines)
