"""RocketMQ ACL 1.0: accounts and permissions in plain_acl.yml, read again when changed.

Everything of the cluster, and whatever changes a topic or a group, is for accounts with
`admin`. Others look at what they may send to or receive from.

Source: PlainAccessValidator and PlainPermissionManager, RocketMQ 4.9.7.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from ropeway.acl import signature
from ropeway.acl.api import (
    Action,
    Decision,
    Hook,
    HookError,
    Principal,
    Refused,
    ResourceKind,
)
from ropeway.acl.plain_file import PUB, SUB, PlainRules, RuleFileError, read

if TYPE_CHECKING:
    from ropeway.acl.api import Credentials, Identity, Need, Setting, Source
    from ropeway.acl.plain_file import Account

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 1.0
_PERMISSION = {
    Action.PUB: PUB,
    Action.SUB: SUB,
    # Who may send or receive may look.
    Action.GET: PUB | SUB,
    Action.LIST: PUB | SUB,
}


def open_hook(setting: Setting) -> Hook:
    """Make the hook; its option `file` says where the rules are.

    Raises:
        HookError: There is no such file, or it cannot be used.
    """
    given = setting.options.get("file")
    if not isinstance(given, str) or len(setting.options) != 1:
        raise HookError(
            f"options of {setting.name} are {sorted(setting.options)}; allowed: file, "
            "the path of plain_acl.yml"
        )
    path = Path(given).expanduser()
    try:
        plain = Plain(setting, path, read(path))
    except RuleFileError as error:
        raise HookError(str(error)) from error
    following = asyncio.get_running_loop().create_task(plain.follow())

    async def close() -> None:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following

    return Hook(authenticator=plain, authorizer=plain, find=plain.find, close=close)


class Plain:
    """Accounts as the file has them; the old ones while it cannot be used.

    Args:
        setting: What the hook was given.
        path: The file.
        rules: What it says now.
    """

    def __init__(self, setting: Setting, path: Path, rules: PlainRules) -> None:
        self._name = setting.name
        self._changed = setting.changed
        self._audit = setting.audit
        self._path = path
        self._seen = _look(path)
        self._know(rules)

    def _know(self, rules: PlainRules) -> None:
        self._rules = rules
        self._principals = {
            one.name: Principal(
                one.name, self._name, super=one.admin, rule=f"account {one.name}"
            )
            for one in rules.accounts.values()
        }

    def find(self, name: str) -> Principal | None:
        """The principal of an account."""
        return self._principals.get(name)

    # Who somebody is.

    def authenticate(self, credentials: Credentials, source: Source) -> Identity:
        """The account that signed; or an address that is let in unasked."""
        for text, matches in self._rules.white:
            if matches(source.address):
                return self._white("globalWhiteRemoteAddresses", text)
        account = self._rules.accounts.get(credentials.access_key)
        if account is None:
            return None
        if account.white_rule and account.white(source.address):
            return self._white(account.name, account.white_rule)
        if not signature.is_right(credentials, account.secret):
            return Refused(f"wrong signature of account {account.name}")
        return self._principals[account.name]

    def _white(self, name: str, text: str) -> Principal:
        return Principal(name, self._name, super=True, rule=f"white address {text}")

    # What they may do.

    def authorize(
        self,
        principal: Principal,
        need: Need,
        source: Source,  # noqa: ARG002
    ) -> Decision | None:
        """By the account's permissions for the topic or group, or its default ones."""
        if principal.hook != self._name:
            return None
        account = self._rules.accounts.get(principal.name)
        if account is None:
            return Decision(allowed=False, rule="account is gone")
        found = _permission(account, need)
        if found is None:
            return Decision(
                allowed=False,
                rule=f"account {account.name}, admin: false",
                remark="only an account with admin may",
            )
        permission, rule = found
        allowed = any(
            permission & _PERMISSION.get(action, 0) for action in need.of_clients
        )
        return Decision(allowed=allowed, rule=f"account {account.name}, {rule}")

    # Following the file.

    async def follow(self) -> None:
        """Read the file again whenever it has changed."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                await self.look_again()
            except Exception:  # nobody would begin it again
                log.exception("access rules stay as they were")

    async def look_again(self) -> None:
        """Read the file if it has changed; one that cannot be used changes nothing."""
        seen = await asyncio.to_thread(_look, self._path)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            rules = await asyncio.to_thread(read, self._path)
        except RuleFileError as error:
            log.warning("access rules stay as they were", reason=str(error))
            return
        old, new = self._rules, rules
        self._know(new)
        self._changed()
        states = _shown(old, new), _shown(new, old)
        self._audit.change("ACCESS_FILE", None, None, str(self._path), *states)


def _shown(rules: PlainRules, other: PlainRules) -> dict[str, Any]:
    """Rules for the audit log: without secrets, but for whether they are others."""
    return {
        "whiteAddresses": [text for text, _ in rules.white],
        "accounts": {
            one.name: _account(one, other.accounts.get(name))
            for name, one in rules.accounts.items()
        },
    }


def _account(account: Account, other: Account | None) -> dict[str, Any]:
    is_other = other is not None and other.secret != account.secret
    return {
        "admin": account.admin,
        "whiteAddress": account.white_rule,
        "secret": "another" if is_other else "***",
        "defaultTopicPerm": _text(account.default_topic),
        "defaultGroupPerm": _text(account.default_group),
        "topicPerms": {name: _text(one) for name, one in account.topics.items()},
        "groupPerms": {name: _text(one) for name, one in account.groups.items()},
    }


def _text(permission: int) -> str:
    given = [name for bit, name in ((PUB, "PUB"), (SUB, "SUB")) if permission & bit]
    return "|".join(given) or "DENY"


def _permission(account: Account, need: Need) -> tuple[int, str] | None:
    """What an account may do to a resource, and which line of the file says so."""
    if all(action not in _PERMISSION for action in need.actions):
        return None
    kind, name = need.resource.kind, need.resource.name
    if kind is ResourceKind.TOPIC:
        named, otherwise, key = account.topics, account.default_topic, "topic"
    elif kind is ResourceKind.GROUP:
        named, otherwise, key = account.groups, account.default_group, "group"
    else:
        return None
    if name in named:
        return named[name], f"{key}Perms of {name}"
    return otherwise, f"default{key.capitalize()}Perm"


def _look(path: Path) -> tuple[int, int, int] | None:
    """What tells a file from another one; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
