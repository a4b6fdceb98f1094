"""The options of every command that is a client of a cluster.

`SETTINGS` is the only list of them. `gateway.cli.target` says which one wins. Nothing
here imports the client, so that `ropeway --help` stays fast.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

_META = "ropeway.given"


class Setting(NamedTuple):
    """One thing that can be said of a cluster, and where."""

    name: str
    """That of the member in a context, too."""
    flags: tuple[str, ...]
    """The option; none where commands that need it have their own."""
    environment: str
    """The variable; empty where there is none."""
    help: str = ""
    metavar: str | None = None
    """None for a switch."""


SETTINGS = (
    Setting(
        "name_server",
        ("-n", "--name-server"),
        "ROPEWAY_NAME_SERVER",
        "Name servers; port 9876 by default.",
        "HOST[:PORT][;...]",
    ),
    Setting(
        "context",
        ("--context",),
        "ROPEWAY_CONTEXT",
        "A cluster saved by `ropeway context add`.",
        "NAME",
    ),
    Setting(
        "access_key", ("--access-key",), "ROPEWAY_ACCESS_KEY", "The user's name.", "KEY"
    ),
    Setting(
        "secret_key_file",
        ("--secret-key-file",),
        "",
        "The user's secret key: a file, or - for a line of stdin.",
        "FILE|-",
    ),
    Setting("secret_key", (), "ROPEWAY_SECRET_KEY"),
    Setting(
        "token_file",
        ("--token-file",),
        "",
        "A token instead of keys: a file, or - for a line of stdin.",
        "FILE|-",
    ),
    Setting("token", (), "ROPEWAY_TOKEN"),
    Setting(
        "tls",
        ("--tls/--no-tls",),
        "ROPEWAY_TLS",
        "Speak TLS; implied by the TLS options below.",
    ),
    Setting(
        "tls_ca",
        ("--tls-ca",),
        "ROPEWAY_TLS_CA",
        "Trust the CAs in this PEM file, not the system's.",
        "FILE",
    ),
    Setting(
        "tls_cert",
        ("--tls-cert",),
        "ROPEWAY_TLS_CERT",
        "The client certificate, PEM.",
        "FILE",
    ),
    Setting("tls_key", ("--tls-key",), "ROPEWAY_TLS_KEY", "Its key, PEM.", "FILE"),
    Setting(
        "tls_server_name",
        ("--tls-server-name",),
        "ROPEWAY_TLS_SERVER_NAME",
        "The name in the servers' certificates, if it is not the host.",
        "NAME",
    ),
    Setting("site", (), "ROPEWAY_SITE"),
    Setting("output", (), "ROPEWAY_OUTPUT"),
)

_ALWAYS_SHOWN = ("name_server", "context")
"""In the help of each command; `ropeway --help` has all."""


def note(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Keep what an option says; a callback of click's.

    What stands behind the sub-command is parsed later, and wins.
    """
    if value is not None:
        context.meta.setdefault(_META, {})[parameter.name] = value
    return value


def given(context: click.Context) -> Mapping[str, Any]:
    """What options have said, before or behind the sub-command."""
    found: Mapping[str, Any] = context.meta.get(_META, {})
    return found


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


def json_option(function: F) -> F:
    """Let users choose between tables and JSON; the function gets `as_json`."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        from ropeway.gateway.cli.target import find  # noqa: PLC0415 - likewise

        output = find(click.get_current_context())["output"]
        return function(*args, as_json=output.value == "json", **kwargs)

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
