"""What Pulsar's admin REST says of roles: the only requests that this hook makes."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.acl.api import PulsarAdmin

_FORBIDDEN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

Roles = dict[str, frozenset[str]]


class AdminError(Exception):
    """Pulsar did not say it; the text says why, for the log."""


class _AuthPolicies(msgspec.Struct, frozen=True):
    namespace_auth: Roles = {}
    destination_auth: dict[str, Roles] = {}
    subscription_auth_roles: Roles = {}


class _Policies(msgspec.Struct, frozen=True):
    auth_policies: _AuthPolicies = _AuthPolicies()
    subscription_auth_mode: str = "None"


class _Tenant(msgspec.Struct, frozen=True, rename="camel"):
    admin_roles: frozenset[str] = frozenset()


class Permissions(NamedTuple):
    """Who may do what in one namespace."""

    namespace: Roles
    """Actions by role."""
    topics: dict[str, Roles]
    """Actions by role, by the topic's full name."""
    any_topic: Roles
    """Actions by role, of all topics."""
    subscriptions: Roles
    """Who may use a subscription, where not everybody may."""
    by_prefix: bool
    """Whether a subscription's name has to begin with the role."""
    admins: frozenset[str]
    """Roles that may do everything with the tenant's namespaces."""


NOBODY = Permissions({}, {}, {}, {}, by_prefix=False, admins=frozenset())
"""What a namespace allows that does not exist."""


class Admin:
    """What a cluster's admin REST says.

    Args:
        rest: Asks it.
    """

    def __init__(self, rest: PulsarAdmin) -> None:
        self._rest = rest

    async def permissions(self, tenant: str, namespace: str) -> Permissions:
        """Who may do what in a namespace; nobody anything where there is none.

        Raises:
            AdminError: Pulsar did not say it.
        """
        space = f"{quote(tenant, safe='')}/{quote(namespace, safe='')}"
        found = await self._get(f"namespaces/{space}", _Policies)
        if found is None:
            return NOBODY
        auth = found.auth_policies
        return Permissions(
            namespace=auth.namespace_auth,
            topics=auth.destination_auth,
            any_topic=_united(auth.destination_auth.values()),
            subscriptions=auth.subscription_auth_roles,
            by_prefix=found.subscription_auth_mode == "Prefix",
            admins=await self._admins(tenant),
        )

    async def _admins(self, tenant: str) -> frozenset[str]:
        try:
            found = await self._get(f"tenants/{quote(tenant, safe='')}", _Tenant)
        except _ForbiddenError:
            # Only superusers see it. Whose role is that of an admin has to have
            # permissions then, like anybody else.
            return frozenset()
        return found.admin_roles if found is not None else frozenset()

    async def superusers(self) -> frozenset[str]:
        """Roles that may do everything; none where only superusers see them.

        Raises:
            AdminError: Pulsar did not say it.
        """
        try:
            found = await self._get("brokers/configuration/runtime", dict[str, Any])
        except _ForbiddenError:
            return frozenset()
        given = str((found or {}).get("superUserRoles") or "")
        # A Java set prints itself in brackets.
        return frozenset(one.strip() for one in given.strip("[]").split(",")) - {""}

    async def _get(self, path: str, kind: Any) -> Any:
        """What is answered; None where there is no such thing."""
        try:
            status, answer = await self._rest.get(path)
        except OSError as error:
            raise AdminError(
                f"Pulsar's admin REST does not answer: {reason_of(error)}"
            ) from error
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status in _FORBIDDEN:
            raise _ForbiddenError(f"Pulsar does not permit us to ask for {path}")
        if status != HTTPStatus.OK:
            raise AdminError(f"Pulsar answers {status} to {path}")
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as error:
            raise AdminError(f"Pulsar answers {path} with: {error}") from error


def _united(several: Iterable[Roles]) -> Roles:
    united: Roles = {}
    for roles in several:
        for role, actions in roles.items():
            united[role] = united.get(role, frozenset()) | actions
    return united


class _ForbiddenError(AdminError):
    """Our own token does not let us ask."""
