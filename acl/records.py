"""How users and rules are kept: JSON under `user,NAME` and `rules,SUBJECT`.

Passwords are sealed. What cannot be read is left out and said once: that user cannot
sign in, that subject may do nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog

from ropeway.acl.administration import Rules, RulesError, User
from ropeway.acl.api import VaultError
from ropeway.acl.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.acl.api import Vault

log = structlog.get_logger(__name__)

USER = "user,"
RULES = "rules,"


class _User(msgspec.Struct, omit_defaults=True):
    sealed: str
    super: bool = False
    enabled: bool = True


def dump_user(user: User, vault: Vault) -> str:
    """A user as it is kept.

    Raises:
        VaultError: The password cannot be sealed.
    """
    kept = _User(vault.seal(user.password), user.super, user.enabled)
    return msgspec.json.encode(kept).decode()


def dump_rules(rules: Rules) -> str:
    """Rules as they are kept."""
    return msgspec.json.encode(rules).decode()


def load_rules(text: str) -> Rules:
    """What `dump_rules` made.

    Raises:
        msgspec.DecodeError: It is something else.
    """
    return msgspec.json.decode(text, type=Rules)


def load_user(name: str, text: str, vault: Vault) -> User:
    """What `dump_user` made.

    Raises:
        msgspec.DecodeError: It is something else.
        VaultError: Its password cannot be unsealed.
    """
    kept = msgspec.json.decode(text, type=_User)
    return User(name, vault.unseal(kept.sealed), kept.super, kept.enabled)


class Records:
    """Users and rules as this node knows them; only what has changed is read again.

    Args:
        vault: Unseals passwords.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._texts: dict[str, str] = {}
        self.users: dict[str, User] = {}
        self.rules: dict[str, Rules] = {}
        self.policies: dict[str, Policies] = {}

    def take(self, items: Mapping[str, str]) -> None:
        """Be as the store is now."""
        for key in self._texts.keys() - items.keys():
            self._forget(key)
        for key, text in items.items():
            if self._texts.get(key) != text:
                self._forget(key)
                self._load(key, text)
        self._texts = dict(items)

    def _forget(self, key: str) -> None:
        if key.startswith(USER):
            self.users.pop(key.removeprefix(USER), None)
        else:
            subject = key.removeprefix(RULES)
            self.rules.pop(subject, None)
            self.policies.pop(subject, None)

    def _load(self, key: str, text: str) -> None:
        try:
            if key.startswith(USER):
                name = key.removeprefix(USER)
                self.users[name] = load_user(name, text, self._vault)
            elif key.startswith(RULES):
                rules = load_rules(text)
                subject = key.removeprefix(RULES)
                self.policies[subject] = Policies(rules)
                self.rules[subject] = rules
        except (msgspec.DecodeError, VaultError, RulesError) as error:
            log.warning(
                "a record of access control is left out", key=key, reason=str(error)
            )
