"""What stands between the messages of a stream of bytes: an option of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def delimiter(_: click.Context, __: click.Parameter, text: str | None) -> bytes | None:
    r"""Read bytes with escapes like `\n`, `\0` and `\x1e`; a callback of click's.

    Raises:
        BadParameter: It is empty, or an escape is none.
    """
    if text is None:
        return None
    try:
        # The bytes of other letters than escapes come back as they are.
        found = text.encode().decode("unicode_escape").encode("latin-1")
    except UnicodeError as error:
        raise click.BadParameter(
            f"{text!r}; allowed: text with escapes like \\n, \\0 and \\x1e"
        ) from error
    if not found:
        raise click.BadParameter("''; allowed: a letter or more")
    return found


def delimiter_option(help_text: str) -> Callable[[F], F]:
    """Give a command the option `--delimiter`."""
    return click.option(
        "--delimiter",
        callback=delimiter,
        metavar="TEXT",
        help=f"{help_text} With escapes like \\n, \\0 and \\x1e.",
    )
