"""What Pulsar's admin REST says of roles: the only requests that this hook makes."""

from __future__ import annotations

import ssl
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TIMEOUT_S = 5.0
"""A client's request waits for it: less than the 15 s that Java clients connect for."""
_REDIRECTS = 5
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
    """A cluster's admin REST.

    Args:
        url: `http://host:port`, or several hosts with commas between.
        token_file: Our own token, read anew each time; None: it is `token`.
        token: Our own token; None without.
        ca_certificate: Who signed the servers' certificates; None: the system's.

    Raises:
        OSError: `ca_certificate` cannot be used.
    """

    def __init__(
        self,
        url: str,
        token_file: Path | None,
        token: str | None,
        ca_certificate: Path | None,
    ) -> None:
        scheme, _, hosts = url.partition("://")
        self._bases = [f"{scheme}://{host.strip('/')}" for host in hosts.split(",")]
        self._token_file = token_file
        self._token = token
        self._tls = (
            ssl.create_default_context(cafile=ca_certificate)
            if ca_certificate
            else None
        )
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

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
        """What one of the hosts answers; None where there is no such thing."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
            )
        headers = self._headers()
        failure: Exception | None = None
        for base in list(self._bases):
            try:
                return await self._ask(f"{base}/admin/v2/{path}", headers, kind)
            except (aiohttp.ClientError, OSError) as error:  # as TimeoutError is
                failure = error
                # The next one begins with a host that may be up.
                self._bases.remove(base)
                self._bases.append(base)
        raise AdminError(
            f"Pulsar's admin REST does not answer: {failure or 'no answer in time'}"
        ) from failure

    def _headers(self) -> dict[str, str]:
        token = self._token
        if self._token_file is not None:
            try:
                token = self._token_file.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise AdminError(f"{self._token_file} has no token: {error}") from error
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def _ask(self, url: str, headers: dict[str, str], kind: Any) -> Any:
        assert self._session is not None, "made before it is used"
        async with self._session.get(
            URL(url, encoded=True),
            headers=headers,
            max_redirects=_REDIRECTS,
            ssl=self._tls if self._tls is not None else True,
        ) as response:
            answer = await response.read()
            status = response.status
        path = URL(url, encoded=True).path
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
