"""`--names`: a regular expression that chooses from a list of names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


def _pattern(
    _: click.Context, __: click.Parameter, text: str | None
) -> re.Pattern[str] | None:
    return None if text is None else pattern_of(text)


def pattern_of(text: str) -> re.Pattern[str]:
    """Compile a regular expression.

    Raises:
        BadParameter: It is none.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise click.BadParameter(
            f"{text!r}: {error}; allowed: a regular expression of Python's"
        ) from error


names_option = click.option(
    "--names",
    "pattern",
    callback=_pattern,
    metavar="REGEX",
    help="Only names that match as a whole, as Python's re.fullmatch does.",
)


def matching(names: Iterable[str], pattern: re.Pattern[str] | None) -> list[str]:
    """The names that a pattern matches from their first to their last letter."""
    return [name for name in names if pattern is None or pattern.fullmatch(name)]
