"""Which cluster a command talks to, and as whom: the only code that chooses.

The strongest place that has a setting wins: an option; the context of `--context`; an
environment variable; the context of ROPEWAY_CONTEXT, or else the current one; the
default.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, structs

from ropeway import client
from ropeway.client import (
    Admin,
    ClientConfig,
    ConsumerConfig,
    Credentials,
    ProducerConfig,
)
from ropeway.client.tls import TlsFiles
from ropeway.common.reasons import reason_of
from ropeway.gateway.cli import context_file, stdin
from ropeway.gateway.cli.cluster_settings import SETTINGS, given
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

C = TypeVar("C", bound=ClientConfig)

_META = "ropeway.found"
_DEFAULT_PORT = 9876
_MOST_PORT = 65535
_DEFAULTS = {"name_server": f"127.0.0.1:{_DEFAULT_PORT}", "output": "table"}
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}
_STDIN = "-"
ANSWER_S = 10.0
"""How long commands wait for an answer, where clients have 3 s and mqadmin 5: topics on
Pulsar are changed in seconds on a machine that does other things, too."""
NO_SECRET = "unused"  # noqa: S105 - it is none
"""A token stands for the access key, and the secret key is not looked at."""


class Found(NamedTuple):
    """What was chosen for a setting, and from where."""

    value: Any
    source: str
    rank: int
    """0 is the strongest place."""


class Target(Struct, frozen=True, kw_only=True):
    """A cluster as a command reaches it."""

    name_server: str
    credentials: Credentials | None = None
    tls: TlsFiles | None = None
    tls_server_name: str | None = None

    def admin(self) -> Admin:
        """Make an administrator's client."""
        return Admin(self.name_server, config=self.config(ClientConfig))

    def producer(self, group: str) -> client.Producer:
        """Make a producer."""
        return client.Producer(
            self.name_server, group, config=self.config(ProducerConfig)
        )

    def pull_consumer(
        self, group: str, *, consume_from_ms: int = 0, **more: Any
    ) -> client.PullConsumer:
        """Make a consumer, set up like `PullConsumer` itself."""
        config = structs.replace(
            self.config(ConsumerConfig), consume_from_ms=consume_from_ms
        )
        return client.PullConsumer(self.name_server, group, config=config, **more)

    def config(self, kind: type[C]) -> C:
        """How clients of a kind are set up.

        Raises:
            ValueError: A file for TLS cannot be used.
        """
        return kind(
            request_timeout_s=ANSWER_S,
            tls=self.tls.context() if self.tls else None,
            tls_server_name=self.tls_server_name,
            credentials=self.credentials,
        )

    def source_options(self) -> dict[str, str]:
        """The same as options of the data source for Spark."""
        options: dict[str, str | None] = {"nameServer": self.name_server}
        if who := self.credentials:
            options |= {"accessKey": who.access_key, "secretKey": who.secret_key}
        if tls := self.tls:
            options |= {
                "tls": "true",
                "tlsCa": tls.ca,
                "tlsCertificate": tls.certificate,
                "tlsKey": tls.key,
                "tlsServerName": self.tls_server_name,
            }
        return {name: value for name, value in options.items() if value is not None}


def find(context: click.Context) -> Mapping[str, Found]:
    """`choose` for the command that runs; the file with contexts is read once."""
    if _META not in context.meta:
        context.meta[_META] = choose(given(context))
    found: Mapping[str, Found] = context.meta[_META]
    return found


def choose(options: Mapping[str, Any]) -> Mapping[str, Found]:
    """Choose every setting that is set anywhere, or has a default.

    Args:
        options: What was said on the command line.

    Raises:
        MisusedError: There is no context of a name, or a value is wrong.
        CannotError: The file with contexts cannot be read.
    """
    found: dict[str, Found] = {}
    for rank, (source, values) in enumerate(_places(options)):
        for name, value in values.items():
            found.setdefault(name, Found(value, source, rank))
    return _checked(found)


def _places(options: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """All that may have settings, the strongest first."""
    environment = {
        setting.name: os.environ[setting.environment]
        for setting in SETTINGS
        if os.environ.get(setting.environment)
    }
    contexts = context_file.load()
    named = options.get("context")
    name = named or environment.get("context") or contexts.current
    saved = [] if name is None else [(f"context {name}", _saved(contexts, name))]
    here: list[tuple[str, Mapping[str, Any]]] = [("environment", environment)]
    weaker = [*saved, *here] if named else [*here, *saved]
    return [("option", options), *weaker, ("default", _DEFAULTS)]


def _saved(contexts: context_file.Contexts, name: str) -> Mapping[str, Any]:
    fields = msgspec.structs.asdict(contexts.get(name))
    return {key: value for key, value in fields.items() if value is not None}


def _checked(found: dict[str, Found]) -> dict[str, Found]:
    tls, output = found.get("tls"), found["output"]
    if tls is not None and isinstance(tls.value, str):
        if tls.value.lower() not in _BOOLEANS:
            raise MisusedError(f"ROPEWAY_TLS is {tls.value!r}; allowed: true, false")
        found["tls"] = tls._replace(value=_BOOLEANS[tls.value.lower()])
    if output.value not in ("table", "json"):
        raise MisusedError(f"ROPEWAY_OUTPUT is {output.value!r}; allowed: table, json")
    servers = found["name_server"]
    found["name_server"] = servers._replace(value=name_servers(servers.value))
    return found


def name_servers(text: str) -> str:
    """Complete the addresses of name servers, joined by semicolons, with their ports.

    Raises:
        MisusedError: One is no address.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    addresses = [_address(part) for part in parts]
    if not parts or None in addresses:
        raise MisusedError(
            f"--name-server is {text!r:.200}; allowed: HOST[:PORT], several joined by "
            "semicolons; an IPv6 address in brackets"
        )
    return ";".join(filter(None, addresses))


def _address(text: str) -> str | None:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(_DEFAULT_PORT)
    bare = host.removeprefix("[").removesuffix("]")
    is_bracketed = host != bare
    if not bare or any(sign in bare for sign in " \t/,@[]"):
        return None
    if (":" in bare and not is_bracketed) or not (port.isascii() and port.isdecimal()):
        return None
    return host_port.join(bare, int(port)) if 0 < int(port) <= _MOST_PORT else None


def target(found: Mapping[str, Found]) -> Target:
    """The cluster that was chosen.

    Raises:
        MisusedError: What was said does not fit together, or a secret cannot be read.
    """
    tls = {name: one.value for name, one in found.items() if name.startswith("tls")}
    if "tls_key" in tls and "tls_cert" not in tls:
        raise MisusedError("--tls-key is given without --tls-cert")
    is_named = tls.keys() & {"tls_ca", "tls_cert", "tls_server_name"}
    files = TlsFiles(
        ca=tls.get("tls_ca"),
        certificate=tls.get("tls_cert"),
        key=tls.get("tls_key"),
    )
    speaks_tls = tls.get("tls", bool(is_named))
    return Target(
        name_server=found["name_server"].value,
        credentials=_credentials(found),
        tls=files if speaks_tls else None,
        tls_server_name=tls.get("tls_server_name") if speaks_tls else None,
    )


def of_context(name: str) -> Target:
    """The cluster of a context, beside the one that a command is for.

    Nothing else is looked at, so that no credentials of the other one go there.

    Raises:
        MisusedError: There is none, or it does not fit together.
        CannotError: The file with contexts cannot be read.
    """
    saved = _saved(context_file.load(), name)
    found = {
        key: Found(value, f"context {name}", 0)
        for key, value in {**_DEFAULTS, **saved}.items()
    }
    return target(_checked(found))


def _credentials(found: Mapping[str, Found]) -> Credentials | None:
    """Who asks: by a token or by keys, whatever stands in the stronger place."""
    access, secret, token = (
        found.get("access_key"),
        _stronger(found, "secret_key"),
        _stronger(found, "token"),
    )
    if token and access and token.rank == access.rank:
        raise MisusedError(
            f"a token and an access key are both given ({token.source}); allowed: one"
        )
    if token and (access is None or token.rank < access.rank):
        return Credentials(access_key=str(token.value), secret_key=NO_SECRET)
    if access is None and secret is None:
        return None
    if access is None or secret is None:
        raise MisusedError(
            "an access key and a secret key go together: --access-key, and "
            "--secret-key-file or ROPEWAY_SECRET_KEY"
        )
    return Credentials(access_key=access.value, secret_key=str(secret.value))


def _stronger(found: Mapping[str, Found], name: str) -> Found | None:
    """A secret as it is, or from its file."""
    plain, file = found.get(name), found.get(f"{name}_file")
    if file is None or (plain is not None and plain.rank <= file.rank):
        return plain
    return file._replace(value=secret_in(file.value))


def secret_in(file: str) -> str:
    """Read a secret: a file's text, or a line of the standard input for `-`.

    Raises:
        MisusedError: It cannot be read, or there is none.
    """
    try:
        data = stdin.read_line() if file == _STDIN else _bytes(file)
        secret = data.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is no text"
        raise MisusedError(f"no secret can be read from {file}: {reason}") from error
    if not secret:
        raise MisusedError(f"no secret can be read from {file}: it is empty")
    return secret


def _bytes(file: str) -> bytes:
    return Path(file).read_bytes()
