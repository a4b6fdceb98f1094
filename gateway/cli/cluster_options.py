"""The options of every command that is a client of a cluster.

`cluster_settings` lists them, and `target` says which one wins. Nothing here imports
the client, so that `ropeway --help` stays fast.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

from ropeway.gateway.cli.cluster_settings import SETTINGS, Setting, given, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., Any]")

_ALWAYS_SHOWN = ("name_server", "context")
"""In the help of each command; `ropeway --help` has all."""


def options(*, is_complete: bool) -> list[click.Parameter]:
    """Make the options.

    Args:
        is_complete: Whether the help has all of them.
    """
    return [
        click.Option(
            [*setting.flags, setting.name],
            default=None,
            metavar=setting.metavar,
            expose_value=False,
            callback=note,
            hidden=not (is_complete or setting.name in _ALWAYS_SHOWN),
            help=f"{setting.help}{_environment(setting)}",
        )
        for setting in SETTINGS
        if setting.flags
    ]


def _environment(setting: Setting) -> str:
    return f"  [env: {setting.environment}]" if setting.environment else ""


def cluster_options(function: F) -> F:
    """Give a command the options; its function gets the `Target` named `cluster`."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        from ropeway.gateway.cli.target import find, target  # noqa: PLC0415 - takes long

        context = click.get_current_context()
        _refuse_bytes([*kwargs.values(), *given(context).values()])
        cluster = target(find(context))
        return function(*args, cluster=cluster, **kwargs)

    # As click's own decorators keep them: the last one first.
    found = vars(called).setdefault("__click_params__", [])
    found += reversed(options(is_complete=False))
    return cast("F", called)


def _refuse_bytes(values: Iterable[Any]) -> None:
    """Refuse what is not UTF-8: Python keeps such bytes as halves of surrogate pairs.

    Raises:
        MisusedError: A value is none.
    """
    from ropeway.gateway.cli.failures import MisusedError  # noqa: PLC0415 - takes long

    for value in values:
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not text.isascii():
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raw = text.encode(errors="surrogateescape")
                    raise MisusedError(f"argument {raw!r}; allowed: UTF-8") from None


class Printed(NamedTuple):
    """What a command prints as JSON."""

    types: tuple[Any, ...]
    """The `Row` of the document, or a list of it; all that it may be."""
    is_lines: bool
    """Whether each one is a line of its own."""


def json_option(*types: Any, is_lines: bool = False) -> Callable[[F], F]:
    """Let users choose between tables and JSON; the function gets `as_json`.

    Args:
        types: Those of what may be printed; `ropeway schema` has all.
        is_lines: Whether there may be several documents, a line each.
    """
    return functools.partial(_with_json, Printed(types, is_lines))


def printed(command: click.Command) -> Printed | None:
    """What a command prints as JSON; None where it never does."""
    return getattr(command.callback, "printed", None)


def _with_json(printed: Printed, function: F) -> F:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        from ropeway.gateway.cli.target import find  # noqa: PLC0415 - likewise

        output = find(click.get_current_context())["output"]
        return function(*args, as_json=output.value == "json", **kwargs)

    vars(called)["printed"] = printed
    short = click.option(
        "--json",
        "output",
        flag_value="json",
        expose_value=False,
        callback=note,
        help="Short for --output json.",
    )
    output = click.option(
        "--output",
        type=click.Choice(["table", "json"]),
        # Before the other one is looked at, which wins.
        is_eager=True,
        expose_value=False,
        callback=note,
        help="A table for people (the default), or JSON for scripts.",
    )
    return cast("F", output(short(called)))


def takes(command: click.Command) -> bool:
    """Whether a command has the options."""
    return any(one.name == SETTINGS[0].name for one in command.params)
