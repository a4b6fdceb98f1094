"""Prometheus' text format, as far as metrics of ours need it.

Written here and not by a library, because a node with 10,000 queues writes 20,000
samples in each scrape: docs/dependencies.md has the figures.

Source: Prometheus, "Exposition formats", text format 0.0.4.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ropeway.gateway.http.metrics.catalog import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ropeway.gateway.http.metrics.catalog import Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

_ESCAPED = re.compile(r"\\(.)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def escape(value: str) -> str:
    """A label's value as it stands between quotation marks."""
    if '"' in value or "\\" in value or "\n" in value:
        return value.translate(_ESCAPES)
    return value


def parse(line: str) -> tuple[str, dict[str, str], float]:
    """A sample's line: its name, labels and value; a whole number is an `int`."""
    head, _, value = line.rpartition(" ")
    name, _, labels = head.partition("{")
    found = {
        key: _ESCAPED.sub(_unescaped, text) for key, text in _LABEL.findall(labels)
    }
    return name, found, int(value) if value.isdecimal() else float(value)


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def join(labels: Mapping[str, str]) -> str:
    """Labels as they stand between braces."""
    return ",".join(f'{name}="{escape(value)}"' for name, value in labels.items())


class Page:
    """Samples by their family.

    Args:
        common: Labels that all samples have, but those of the process.
    """

    def __init__(self, common: Mapping[str, str]) -> None:
        self.common = join(common)
        """The same as `join` gives it, for who writes many lines."""
        self._lines: dict[str, list[str]] = {name: [] for name in FAMILIES}

    def lines(self, name: str) -> list[str]:
        """Where whole lines of a family go, for who writes many."""
        return self._lines[name]

    def add(self, name: str, value: float, **labels: str) -> None:
        """Add a sample."""
        text = self._labels(name, labels)
        self._lines[name].append(f"{name}{text} {value}")

    def add_histogram(
        self,
        name: str,
        bounds: Sequence[float],
        counts: Sequence[int],
        total: float,
        **labels: str,
    ) -> None:
        """Add a histogram.

        Args:
            name: Its family.
            bounds: Upper bounds of its buckets, but for the last.
            counts: What fell into each bucket alone.
            total: The sum of what was observed.
            labels: Those of its family.
        """
        lines = self._lines[name]
        up_to = 0
        for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
            up_to += count
            text = self._labels(name, {**labels, "le": bound})
            lines.append(f"{name}_bucket{text} {up_to}")
        text = self._labels(name, labels)
        lines.append(f"{name}_sum{text} {total}")
        lines.append(f"{name}_count{text} {up_to}")

    def _labels(self, name: str, labels: Mapping[str, str]) -> str:
        text = join(labels)
        if not name.startswith("process_"):
            text = f"{self.common},{text}" if text else self.common
        return f"{{{text}}}" if text else ""

    def families(self) -> Iterator[tuple[Family, list[str]]]:
        """Families that have samples, with their lines."""
        for name, lines in self._lines.items():
            if lines:
                yield FAMILIES[name], lines

    def text(self) -> bytes:
        """The whole page; families without a sample are left out."""
        parts = []
        for family, lines in self.families():
            parts.append(f"# HELP {family.name} {family.meaning}")
            parts.append(f"# TYPE {family.name} {family.kind}")
            parts += lines
        return ("\n".join(parts) + "\n").encode()
