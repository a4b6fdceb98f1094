"""What can be said of a cluster; `SETTINGS` is the only list of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

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
