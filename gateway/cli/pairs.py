"""Options of the form NAME=VALUE."""

from __future__ import annotations

import click


def pairs(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    """What an option that may come several times has named; a callback of click's."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r}; allowed: NAME=VALUE")
        found[name] = value
    return found
