"""Names the rule of the architecture that a test is for, when that test fails.

A test is marked with the page and the sentence, or how it begins, as
`rule("server.md", "...")`; it stands on that page of docs/architecture word for word.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pluggy import HookimplMarker

if TYPE_CHECKING:
    from collections.abc import Generator

    import pytest

# As pytest's own; programs that tests start are spared the import of pytest.
hookimpl = HookimplMarker("pytest")
ARCHITECTURE = Path(__file__).parents[1] / "docs" / "architecture"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "rule(page, sentence): is for a rule of docs/architecture"
    )


@hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        broken = [named(*mark.args) for mark in item.iter_markers("rule")]
        if broken:
            report.sections.append(("this rule is broken", "\n".join(broken)))
    return report


@cache
def words(page: str) -> str:
    """The text of a page, its line breaks and bold type left out."""
    text = (ARCHITECTURE / page).read_text()
    return re.sub(r"\s+", " ", text.replace("**", ""))


def named(page: str, sentence: str) -> str:
    """A rule with its place, its number where the page counts its laws, and its end.

    Raises:
        ValueError: The page says nothing of the kind.
    """
    text = words(page)
    at = text.find(sentence)
    if at < 0:
        raise ValueError(f"docs/architecture/{page} does not say: {sentence}")
    end = re.compile(r"[.:](?= |$)").search(text, at + len(sentence) - 1)
    whole = text[at : end.start() if end else None]
    for line in (ARCHITECTURE / page).read_text().splitlines():
        number, dot, rest = line.partition(". ")
        if dot and number.isdigit() and sentence in rest.replace("**", ""):
            return f"law {number} of docs/architecture/{page}: {whole}"
    return f"docs/architecture/{page}: {whole}"
