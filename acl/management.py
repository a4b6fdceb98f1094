"""Users and rules of ACL 2.0, changed while the server runs.

Source: AuthenticationMetadataManagerImpl and AuthorizationMetadataManagerImpl, RocketMQ
5.5.0; the remarks are theirs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ropeway.acl.administration import Rule, Rules, RulesError, User, UserExistsError
from ropeway.acl.api import VaultError
from ropeway.acl.policies import Policies, parse_resource
from ropeway.acl.records import (
    RULES,
    USER,
    dump_rules,
    dump_user,
    load_rules,
    load_user,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ropeway.acl.api import RuleStore, Vault
    from ropeway.acl.records import Records

_NAME = re.compile(r"[A-Za-z0-9_.@%|+=-]{1,128}")
_SUBJECT = re.compile(r"User:(.+)", re.IGNORECASE)
_MAX_RULES = 1000
"""Rules of one subject, and what one request may bring."""
_MAX_PASSWORD = 1024


class Management:
    """What mqadmin's user and acl sub-commands do.

    Args:
        store: Where users and rules are kept.
        vault: Seals passwords.
        known: What this node knows of them.
    """

    def __init__(self, store: RuleStore, vault: Vault, known: Records) -> None:
        self._store = store
        self._vault = vault
        self._known = known

    def users(self) -> Mapping[str, User]:
        """Every user by its name."""
        return self._known.users

    def rules(self) -> Mapping[str, Rules]:
        """Every subject's rules, by the subject."""
        return self._known.rules

    # Users.

    async def create_user(self, user: User) -> None:
        """Create a user; there must be none of the name."""
        if not _NAME.fullmatch(user.name):
            raise RulesError(
                f"username is {user.name!a:.80}; allowed: 1 to 128 of a-z, A-Z, 0-9 "
                "and _.@%|+=-"
            )
        _check_password(user.password)

        def create(old: str | None) -> str:
            if old is not None:
                raise UserExistsError
            return self._dump(user)

        await self._store.change(f"{USER}{user.name}", create)

    async def update_user(
        self,
        name: str,
        *,
        password: str | None = None,
        super: bool | None = None,  # noqa: A002 - RocketMQ's word
        enabled: bool | None = None,
    ) -> None:
        """Change what is given of a user that is there."""
        if password is not None:
            _check_password(password)

        def update(old: str | None) -> str:
            if old is None:
                raise RulesError("The user is not exist")
            user = self._load(name, old)
            return self._dump(
                User(
                    name,
                    user.password if password is None else password,
                    user.super if super is None else super,
                    user.enabled if enabled is None else enabled,
                )
            )

        await self._store.change(f"{USER}{name}", update)

    def _dump(self, user: User) -> str:
        try:
            return dump_user(user, self._vault)
        except VaultError as error:
            raise RulesError(str(error)) from error

    def _load(self, name: str, text: str) -> User:
        try:
            return load_user(name, text, self._vault)
        except (msgspec.DecodeError, VaultError) as error:
            raise RulesError(f"user {name:.128} cannot be read: {error}") from error

    async def delete_user(self, name: str) -> None:
        """Delete a user and its rules; none is fine."""
        # Rules first: a user of the same name that is made later has none.
        await self._store.change(f"{RULES}User:{name}", lambda _: None)
        await self._store.change(f"{USER}{name}", lambda _: None)

    # Rules.

    async def add_rules(self, rules: Rules) -> None:
        """Add rules, or replace those of the same resources; the user must be there."""
        subject = self._subject(rules.subject)
        if not rules.custom and not rules.default:
            raise RulesError("The policies is empty.")
        Policies(rules)

        def add(old: str | None) -> str:
            before = _load_rules(subject, old)
            after = Rules(
                subject,
                _merged(before.custom, rules.custom),
                _merged(before.default, rules.default),
            )
            if len(after.custom) + len(after.default) > _MAX_RULES:
                raise RulesError(f"more than {_MAX_RULES} rules of {subject}")
            return dump_rules(after)

        await self._store.change(f"{RULES}{subject}", add)

    async def delete_rules(
        self, subject: str, *, resource: str | None = None, default: bool = False
    ) -> None:
        """Delete a subject's rules, or only that of one resource."""
        subject = self._subject(subject)
        key = None if resource is None else parse_resource(resource)

        def delete(old: str | None) -> str | None:
            if old is None:
                raise RulesError("The acl is not exist.")
            if key is None:
                return None
            before = _load_rules(subject, old)
            custom, standard = before.custom, before.default
            if default:
                standard = _without(standard, key)
            else:
                custom = _without(custom, key)
            if not custom and not standard:
                return None
            return dump_rules(Rules(subject, custom, standard))

        await self._store.change(f"{RULES}{subject}", delete)

    def _subject(self, text: str) -> str:
        found = _SUBJECT.fullmatch(text)
        if found is None:
            raise RulesError(f"subject is {text!a:.80}; allowed: User:NAME")
        if found[1] not in self._known.users:
            raise RulesError(f"The subject of User:{found[1]:.128} is not exist.")
        return f"User:{found[1]}"


def _load_rules(subject: str, text: str | None) -> Rules:
    if text is None:
        return Rules(subject)
    try:
        return load_rules(text)
    except msgspec.DecodeError as error:
        raise RulesError(
            f"the rules of {subject} cannot be read; delete them first"
        ) from error


def _merged(old: Iterable[Rule], new: Iterable[Rule]) -> tuple[Rule, ...]:
    by_resource = {parse_resource(one.resource): one for one in (*old, *new)}
    return tuple(by_resource.values())


def _without(rules: Iterable[Rule], key: object) -> tuple[Rule, ...]:
    return tuple(one for one in rules if parse_resource(one.resource) != key)


def _check_password(password: str) -> None:
    if not 0 < len(password) <= _MAX_PASSWORD:
        raise RulesError(
            f"password of {len(password)} characters; allowed: 1 to {_MAX_PASSWORD}"
        )
