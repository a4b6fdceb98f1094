"""plain_acl.yml, the rules of RocketMQ ACL 1.0, read with care.

A plain value is the text that stands there, as RocketMQ 5 takes it: 0123456 is a secret
of seven characters. RocketMQ 4 first makes a number of it, and then another text; what
it would read otherwise is said in the log, so that it can be put in quotes.

Source: PlainAccessData and PlainPermissionManager, RocketMQ 4.9.8 and 5.1.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
import yaml

from ropeway.acl.addresses import AddressError, parse_plain
from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1024 * 1024
"""Larger files are refused: some 5,000 accounts fit."""
MAX_DEPTH = 8
"""Nesting beyond this is no rule of ours: accounts are three deep."""

MAX_ALIASED = 10_000
"""So many values may be in a file with aliases, each counted as often as it is used."""

log = structlog.get_logger(__name__)

PUB, SUB = 1, 2
"""Permissions are sums of these."""
_PERMISSIONS = {
    "DENY": 0,
    "PUB": PUB,
    "SUB": SUB,
    "PUB|SUB": PUB | SUB,
    "SUB|PUB": PUB | SUB,
}
_YES_OR_NO = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off", ""), False),
}
"""What YAML 1.1 calls so, in any case, and quoted or not."""
_SECRET_KEY_BYTES = 6
"""RocketMQ 4 refuses shorter ones, of both kinds; PlainPermissionManager."""

_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_ACCOUNT_TAG = f"{_TAG}org.apache.rocketmq.common.PlainAccessConfig"
"""RocketMQ's own tools write it before accounts."""
_KEYS = ("accessKey", "secretKey")
_is_canonical = re.compile(r"-?[1-9][0-9]*").fullmatch
_is_number = re.compile(r"[-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?").fullmatch


class _Loader(_Safe):  # type: ignore[misc]
    """Leaves values as they stand there, but for what is nothing, and for merges."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own
        first: [one for one in some if one[0] in (f"{_TAG}null", f"{_TAG}merge")]
        for first, some in _Safe.yaml_implicit_resolvers.items()
    }


_Loader.add_constructor(_ACCOUNT_TAG, _Safe.construct_yaml_map)
_resolve: Any = yaml.SafeLoader("").resolve
"""What kind of value a text is for RocketMQ 4, which knows YAML 1.1."""


class RuleFileError(Exception):
    """A file of rules cannot be used; the text says why, without its secrets."""


class _Account(msgspec.Struct, rename="camel"):
    access_key: str
    secret_key: str = ""
    white_remote_address: str | None = None
    admin: str | None = None
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
        raise RuleFileError(f"cannot read {path}: {reason_of(error)}") from error
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
        _look_through(data)
        loaded = yaml.load(data, _Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A scanner's message quotes the line, which may hold a secret.
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise RuleFileError(f"it is not YAML{where}") from None
    if not isinstance(loaded, dict):
        raise RuleFileError("it is empty, or holds no names with values")
    return loaded


def _look_through(data: bytes) -> None:
    """Refuse bombs, and say what RocketMQ 4 reads otherwise."""
    weight = _Weight()
    before = ""
    for event in yaml.parse(data, _Loader):
        weight.add(event)
        if not isinstance(event, yaml.ScalarEvent):
            before = ""
            continue
        if before in _KEYS:
            _say_if_read_otherwise(event, before)
        before = event.value


class _Weight:
    """How many values a file has, each counted as often as aliases use it."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        """Of what has an anchor, and has ended."""
        self._open: list[tuple[str | None, int]] = []
        """Collections, with what is in them so far."""

    def add(self, event: yaml.Event) -> None:
        """Count what comes.

        Raises:
            RuleFileError: It is too much, or too deep.
        """
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, 1))
            if len(self._open) > MAX_DEPTH:
                raise RuleFileError(f"it is nested deeper than {MAX_DEPTH}")
        elif isinstance(event, yaml.CollectionEndEvent):
            self._ended(*self._open.pop())
        elif isinstance(event, yaml.ScalarEvent):
            self._ended(event.anchor, 1)
        elif isinstance(event, yaml.AliasEvent):
            self._ended(None, _size(self._sizes, event.anchor))

    def _ended(self, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._sizes[anchor] = size
        if not self._open:
            return
        around, had = self._open[-1]
        self._open[-1] = around, had + size
        if self._sizes and had + size > MAX_ALIASED:
            raise RuleFileError(
                f"its aliases (*name) make more than {MAX_ALIASED} values of it; "
                f"allowed: {MAX_ALIASED}"
            )


def _size(sizes: dict[str, int], anchor: str | None) -> int:
    size = sizes.get(anchor or "")
    if size is None:
        raise RuleFileError(
            "it has aliases (*name) of what is not there yet; allowed: of what ends "
            "before them"
        )
    return size


def _say_if_read_otherwise(event: yaml.ScalarEvent, key: str) -> None:
    text = event.value
    if not event.implicit[0] or not text or _is_canonical(text):
        return
    kind = _resolve(yaml.ScalarNode, text, (True, False))
    if kind not in (f"{_TAG}str", f"{_TAG}null") or _is_number(text):
        log.warning(
            "RocketMQ 4 may read a value as another one",
            key=key,
            line=event.start_mark.line + 1 if event.start_mark else None,
            advice="put it in quotes",
        )


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
        admin=_is_admin(name, given.admin or ""),
        default_topic=_permission(name, given.default_topic_perm or "DENY"),
        default_group=_permission(name, given.default_group_perm or "DENY"),
        topics=_permissions(name, given.topic_perms),
        groups=_permissions(name, given.group_perms),
    )


def _permissions(name: str, texts: list[str] | None) -> dict[str, int]:
    found = {}
    for text in texts or ():
        parts = [part.strip() for part in text.split("=") if part]
        if len(parts) != 2 or not parts[0]:  # noqa: PLR2004 - a name and a permission
            raise RuleFileError(
                f"account {name!r:.80}: permission {text!r:.80}; allowed: NAME=PUB|SUB"
            )
        found[parts[0]] = _permission(name, parts[1])
    return found


def _permission(name: str, text: str) -> int:
    found = _PERMISSIONS.get(text.strip())
    if found is None:
        # As for RocketMQ, without a word there.
        log.warning(
            "a permission that is none counts as DENY",
            account=f"{name:.80}",
            permission=f"{text:.80}",
            allowed=", ".join(_PERMISSIONS),
        )
        return 0
    return found


def _is_admin(name: str, text: str) -> bool:
    found = _YES_OR_NO.get(text.lower())
    if found is None:
        # 1 and y are admins for RocketMQ 4 and wrong for RocketMQ 5.
        raise RuleFileError(
            f"account {name!r:.80}: admin is {text!r:.80}; allowed: true or false"
        )
    return found
