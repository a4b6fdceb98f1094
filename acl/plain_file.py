"""plain_acl.yml, the rules of RocketMQ ACL 1.0, read with care.

Source: PlainAccessData and PlainPermissionManager, RocketMQ 4.9.7 and 5.5.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from acl.addresses import AddressError, parse_plain

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1024 * 1024
"""Larger files are refused: some 5,000 accounts fit."""
MAX_DEPTH = 8
"""Nesting beyond this is no rule of ours: accounts are three deep."""

PUB, SUB = 1, 2
"""Permissions are sums of these."""
_PERMISSIONS = {
    "DENY": 0,
    "PUB": PUB,
    "SUB": SUB,
    "PUB|SUB": PUB | SUB,
    "SUB|PUB": PUB | SUB,
    "ANY": PUB | SUB,
}
_SECRET_KEY_BYTES = 6
"""RocketMQ 4 refuses shorter ones, of both kinds; PlainPermissionManager."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class RuleFileError(Exception):
    """A file of rules cannot be used; the text says why, without its secrets."""


class _Account(msgspec.Struct, rename="camel"):
    access_key: str
    secret_key: str = ""
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = None
    group_perms: list[str] | None = None


class _File(msgspec.Struct, rename="camel"):
    global_white_remote_addresses: list[str] | None = None
    accounts: list[_Account] | None = None


class Account(msgspec.Struct, frozen=True):
    """Who may sign, and what is allowed then."""

    name: str
    secret: bytes
    white: Callable[[str], bool]
    """Addresses that are let in unsigned, for everything."""
    white_rule: str
    admin: bool
    default_topic: int
    default_group: int
    topics: dict[str, int]
    groups: dict[str, int]

    def __repr__(self) -> str:
        return f"Account(name={self.name!r}, admin={self.admin})"


class PlainRules(msgspec.Struct, frozen=True):
    """All that a file says."""

    accounts: dict[str, Account]
    white: tuple[tuple[str, Callable[[str], bool]], ...]
    """The rules for addresses that are let in whatever they say, each with its text."""


def read(path: Path) -> PlainRules:
    """Read a file.

    Raises:
        RuleFileError: It cannot be read, or is not what it should be.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RuleFileError(f"cannot read {path}: {error.strerror}") from error
    try:
        return parse(data)
    except RuleFileError as error:
        raise RuleFileError(f"{path}: {error}") from error


def parse(data: bytes) -> PlainRules:
    """Understand the text of a file.

    Raises:
        RuleFileError: It is not what it should be.
    """
    try:
        given = msgspec.convert(_load(data), _File)
        accounts: dict[str, Account] = {}
        for one in given.accounts or ():
            if one.access_key in accounts:
                raise RuleFileError(f"account {one.access_key!r:.80} is there twice")
            accounts[one.access_key] = _account(one)
        white = given.global_white_remote_addresses or ()
        return PlainRules(accounts, tuple((one, parse_plain(one)) for one in white))
    except msgspec.ValidationError as error:
        raise RuleFileError(f"it is not a file of rules: {error}") from error
    except AddressError as error:
        raise RuleFileError(str(error)) from error


def _load(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise RuleFileError(f"more than {MAX_BYTES} bytes; allowed: {MAX_BYTES}")
    try:
        _refuse_bombs(data)
        loaded = yaml.load(data, _Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A scanner's message quotes the line, which may hold a secret.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise RuleFileError(f"it is not YAML{where}") from None
    if not isinstance(loaded, dict):
        raise RuleFileError("it is empty, or holds no names with values")
    return loaded


def _refuse_bombs(data: bytes) -> None:
    depth = 0
    for event in yaml.parse(data, _Loader):
        if isinstance(event, yaml.AliasEvent):
            raise RuleFileError("it has aliases (*name); allowed: none")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise RuleFileError(f"it is nested deeper than {MAX_DEPTH}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _account(given: _Account) -> Account:
    name = given.access_key
    for what, text in (("accessKey", name), ("secretKey", given.secret_key)):
        if len(text) <= _SECRET_KEY_BYTES:
            raise RuleFileError(
                f"account {name!r:.80}: {what} has {len(text)} characters; "
                f"allowed: more than {_SECRET_KEY_BYTES}"
            )
    white = given.white_remote_address or ""
    return Account(
        name=name,
        secret=given.secret_key.encode(),
        white=parse_plain(white),
        white_rule=white,
        admin=given.admin,
        default_topic=_permission(name, given.default_topic_perm or "DENY"),
        default_group=_permission(name, given.default_group_perm or "DENY"),
        topics=_permissions(name, given.topic_perms),
        groups=_permissions(name, given.group_perms),
    )


def _permissions(name: str, texts: list[str] | None) -> dict[str, int]:
    found = {}
    for text in texts or ():
        resource, equals, permission = text.partition("=")
        if not equals or not resource.strip():
            raise RuleFileError(
                f"account {name!r:.80}: permission {text!r:.80}; allowed: NAME=PUB|SUB"
            )
        found[resource.strip()] = _permission(name, permission)
    return found


def _permission(name: str, text: str) -> int:
    found = _PERMISSIONS.get(text.strip())
    if found is None:
        raise RuleFileError(
            f"account {name!r:.80}: permission {text!r:.80}; "
            f"allowed: {', '.join(_PERMISSIONS)}"
        )
    return found
