"""Reading the configuration: a TOML file, with the command line's settings over it."""

from __future__ import annotations

import difflib
import tomllib
import types
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import inspect

from ropeway.common.reasons import reason_of
from ropeway.gateway.config import Config, ConfigError
from ropeway.gateway.topics_config import TOPIC_QUEUES

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S", bound=msgspec.Struct)

_NAMES: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.StrType: "text",
    inspect.FloatType: "a number",
    inspect.IntType: "a whole number",
    inspect.CustomType: "a path",
    inspect.DictType: "a table",
}


def load(path: Path | None, over: Mapping[str, Any]) -> Config:
    """Read the configuration.

    Args:
        path: A TOML file with the members of `Config` as its keys; None: defaults.
        over: Settings of the same form that come before the file's.

    Raises:
        ConfigError: The file cannot be read, or a setting cannot be used.
    """
    return read(_merged(_parse(path) if path else {}, over))


def read(settings: Mapping[str, Any]) -> Config:
    """Turn settings as TOML has them into a `Config`.

    Raises:
        ConfigError: Says which key, what came, and what is allowed.
    """
    return _struct(Config, settings, "")


def parse_listener(text: str) -> dict[str, Any]:
    """Read `HOST:PORT` or `HOST:PORT=ADVERTISED_HOST[:ADVERTISED_PORT]`.

    An IPv6 address stands in brackets; without a host it is 127.0.0.1.

    Raises:
        ConfigError: It is not of that form.
    """
    bind, equals, shown = text.partition("=")
    host, port = _split(bind, text)
    listener: dict[str, Any] = {"port": port}
    if port is None or (equals and not shown):
        raise _bad_listener(text)
    if host:
        listener["host"] = host
    if shown:
        listener["advertised_host"], shown_port = _split(shown, text)
        if shown_port is not None:
            listener["advertised_port"] = shown_port
    return listener


def parse_address(text: str) -> dict[str, Any]:
    """Read `HOST:PORT` as `parse_listener` does, without an address to advertise.

    Raises:
        ConfigError: It is not of that form.
    """
    host, port = _split(text, text)
    if port is None or "=" in text:
        raise ConfigError(f"address is {text!r}; allowed: HOST:PORT")
    return {"host": host, "port": port} if host else {"port": port}


def parse_topic(text: str) -> tuple[str, int]:
    """Read `NAME` or `NAME:QUEUES`, a topic to create; without a number it gets 8.

    Raises:
        ConfigError: It is not of that form.
    """
    name, colon, queues = text.partition(":")
    if not name or (colon and not (queues.isascii() and queues.isdecimal())):
        raise ConfigError(f"topic is {text!r}; allowed: NAME or NAME:QUEUES")
    return name, int(queues) if colon else TOPIC_QUEUES


def _split(address: str, text: str) -> tuple[str, int | None]:
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _bad_listener(text)
        port = rest[1:]
    else:
        host, _, port = address.partition(":")
    if not port:
        return host, None
    if not port.isdecimal():
        raise _bad_listener(text)
    return host, int(port)


def _bad_listener(text: str) -> ConfigError:
    return ConfigError(
        f"listener is {text!r}; allowed: HOST:PORT or "
        "HOST:PORT=ADVERTISED_HOST:ADVERTISED_PORT, an IPv6 address in brackets"
    )


def _parse(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {reason_of(error)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _merged(below: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in over.items():
        known = merged.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            merged[key] = _merged(known, value)
        else:
            merged[key] = value
    return merged


def _struct(kind: type[S], given: object, at: str) -> S:
    if not isinstance(given, dict):
        raise ConfigError(f"{at} is {given!r:.80}; allowed: a table of settings")
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    prefix = f"{at}." if at else ""
    for key in given.keys() - fields:
        raise ConfigError(_unknown(key, list(fields), prefix))
    for name, field in fields.items():
        if field.required and name not in given:
            raise ConfigError(f"{prefix}{name} is missing")
    return kind(
        **{
            name: _value(fields[name].type, value, f"{prefix}{name}")
            for name, value in given.items()
        }
    )


def _unknown(key: str, known: list[str], prefix: str) -> str:
    nearest = difflib.get_close_matches(key, known, 1, 0.0)[0]
    return f"{prefix}{key} is not a setting; the nearest is {prefix}{nearest}"


def _value(kind: Any, given: Any, at: str) -> Any:
    options = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kind = options[0] if is_struct(options[0]) else kind
    if is_struct(kind):
        return _struct(kind, given, at)
    if typing.get_origin(kind) is tuple:
        if not isinstance(given, list) or not given:
            raise ConfigError(f"{at} is {given!r:.80}; allowed: a list of at least one")
        return tuple(
            _value(options[0], one, f"{at}[{index}]") for index, one in enumerate(given)
        )
    if typing.get_origin(kind) is dict and isinstance(given, dict):
        return {
            _value(options[0], key, at): _value(options[1], one, f"{at}.{key}")
            for key, one in given.items()
        }
    try:
        return msgspec.convert(given, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        allowed = _allowed(inspect.type_info(kind))
        raise ConfigError(f"{at} is {given!r:.80}; allowed: {allowed}") from error


def is_struct(kind: Any) -> bool:
    """Whether a member holds a table of settings."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str) and value:
        return Path(value).expanduser()
    raise ValueError(value)


def _allowed(info: inspect.Type) -> str:
    if isinstance(info, inspect.UnionType):
        some = (one for one in info.types if not isinstance(one, inspect.NoneType))
        return " or ".join(_allowed(one) for one in some)
    if isinstance(info, inspect.LiteralType):
        return ", ".join(str(value) for value in info.values)
    if isinstance(info, inspect.StrType) and info.pattern:
        return "1 to 127 of a-z, A-Z, 0-9, _, -, % and |"
    bounds = ""
    if isinstance(info, (inspect.IntType, inspect.FloatType)):
        limits = (("above ", info.gt), ("from ", info.ge), ("to ", info.le))
        bounds = "".join(
            f" {word}{limit}" for word, limit in limits if limit is not None
        )
    return _NAMES[type(info)] + bounds
