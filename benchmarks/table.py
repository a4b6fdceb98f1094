"""Markdown tables: figures, their ratios, and their place in docs/performance.md."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1
) -> str:
    """A table whose first columns are names, and the others numbers."""
    lines = [headings, *rows]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = [
        "-" * width if index < names else "-" * (width - 1) + ":"
        for index, width in enumerate(widths)
    ]
    lines.insert(1, rule)
    return "\n".join(f"| {' | '.join(_cells(line, widths, names))} |" for line in lines)


def _cells(line: Sequence[str], widths: Sequence[int], names: int) -> list[str]:
    return [
        cell.ljust(width) if index < names else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def spread(values: Sequence[float]) -> str:
    """Median and range; nothing where there is nothing to compare with."""
    if not values:
        return "-"
    middle = statistics.median(values)
    return f"{middle:.2f} [{min(values):.2f}-{max(values):.2f}]"


def at_most(limit: float | None, values: Sequence[float]) -> str:
    """A limit, and whether the median keeps it."""
    if limit is None or not values:
        return "-"
    kept = statistics.median(values) <= limit
    return f"<= {limit:g}: {'met' if kept else 'missed'}"


def at_least(limit: float | None, values: Sequence[float]) -> str:
    """The same of what has to be more."""
    if limit is None or not values:
        return "-"
    kept = statistics.median(values) >= limit
    return f">= {limit:g}: {'met' if kept else 'missed'}"


def circumstances() -> str:
    """The machine, and what else it does."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores of "
        f"{cpu[1] if cpu else platform.machine()}, Linux {platform.release()}, "
        f"Python {platform.python_version()}, load average before it "
        f"{os.getloadavg()[0]:.1f}."
    )


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Put a text between a page's two markers of that name.

    Raises:
        ValueError: the page does not have them.
    """
    first, last = f"<!-- {name}: written by a program -->", f"<!-- /{name} -->"
    before, found, rest = page.read_text().partition(first)
    _, also_found, after = rest.partition(last)
    if not found or not also_found:
        raise ValueError(f"{page.name} lacks {first} or {last}")
    page.write_text(f"{before}{first}\n{text}\n{last}{after}")
