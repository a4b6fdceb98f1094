"""RocketMQ ACL 2.0: users and policies, kept in the route store for all nodes.

Source: DefaultAuthenticationHandler, UserAuthorizationHandler and
AclAuthorizationHandler, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.acl import records, signature
from ropeway.acl.api import (
    Decision,
    Hook,
    HookError,
    Principal,
    Refused,
    StoreError,
    VaultError,
)
from ropeway.acl.bootstrap import bootstrap
from ropeway.acl.management import Management

if TYPE_CHECKING:
    from ropeway.acl.api import Credentials, Identity, Need, Setting, Source

_OPTIONS = {"superuser", "superuser_password_file", "migrate_from", "principals_of"}


async def open_hook(setting: Setting) -> Hook:
    """Make the hook, and the users that its options ask for.

    Raises:
        HookError: The options cannot be used.
    """
    principals_of = _principals_of(setting)
    store = records.Records(setting.vault)
    store.take(setting.store.items())
    users = Users(setting.name, store, principals_of)

    def changed() -> None:
        store.take(setting.store.items())
        users.forget()
        setting.changed()

    setting.store.watch(changed)
    management = Management(setting.store, setting.vault, store)
    try:
        await bootstrap(setting, management)
    except (StoreError, VaultError) as error:
        raise HookError(f"{setting.name}: {error}") from error
    return Hook(
        authenticator=users,
        authorizer=users,
        administration=management,
        find=users.find,
    )


def _principals_of(setting: Setting) -> frozenset[str]:
    unknown = setting.options.keys() - _OPTIONS
    given: Any = setting.options.get("principals_of", [])
    if unknown or not isinstance(given, list):
        raise HookError(
            f"options of {setting.name} are {sorted(setting.options)}; "
            f"allowed: {', '.join(sorted(_OPTIONS))}, of which the last is a list"
        )
    return frozenset((setting.name, *given))


class Users:
    """Who users are, by their signatures, and what their policies let them do.

    Args:
        name: The hook's.
        store: Users and rules.
        principals_of: Names of hooks whose principals are judged by the rules, too.
    """

    def __init__(
        self, name: str, store: records.Records, principals_of: frozenset[str]
    ) -> None:
        self._name = name
        self._store = store
        self._principals_of = principals_of
        self._known: dict[str, tuple[Principal, bytes]] = {}

    def forget(self) -> None:
        """Users have changed."""
        self._known.clear()

    def find(self, name: str) -> Principal | None:
        """The principal of a user."""
        known = self._find(name)
        return known[0] if known else None

    def _find(self, name: str) -> tuple[Principal, bytes] | None:
        known = self._known.get(name)
        if known is None and (user := self._store.users.get(name)) is not None:
            principal = Principal(
                name, self._name, super=user.super, rule=f"user {name}"
            )
            known = self._known[name] = principal, user.password.encode()
        return known

    def authenticate(self, credentials: Credentials, source: Source) -> Identity:  # noqa: ARG002
        """The user who signed."""
        known = self._find(credentials.access_key)
        if known is None:
            return None
        principal, secret = known
        if not signature.is_right(credentials, secret):
            return Refused(f"wrong signature of user {principal.name}")
        if not self._store.users[principal.name].enabled:
            return Refused(f"user {principal.name} is disabled")
        return principal

    def authorize(
        self, principal: Principal, need: Need, source: Source
    ) -> Decision | None:
        """By the subject's policies; nothing that matches denies."""
        if principal.hook not in self._principals_of:
            return None
        policies = self._store.policies.get(f"User:{principal.name}")
        found = policies.decide(need, source.address) if policies else None
        if found is not None:
            allowed, rule = found
            return Decision(allowed=allowed, rule=rule)
        if principal.hook != self._name:
            return None
        return Decision(allowed=False, rule="no policy matches")
