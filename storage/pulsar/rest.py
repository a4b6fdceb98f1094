"""Requests to Pulsar's admin REST, at whichever host answers: its only aiohttp code."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import aiohttp
import msgspec
import structlog
from msgspec import Struct
from yarl import URL

from ropeway.common.reasons import reason_of
from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.pulsar.authentication import Unauthenticated, headers
from ropeway.storage.pulsar.errors import PulsarError, PulsarUnavailableError
from ropeway.storage.pulsar.tls import explained

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ropeway.storage.pulsar.authentication import Authentication
    from ropeway.storage.pulsar.pulsar_id import Expected

TIMEOUT_S = 30.0
"""As Pulsar's own admin client waits for (60 s), halved: a create is retried."""

_REDIRECTS = 5
"""From a broker to the one that has the topic; Pulsar sends us on with 307 alone."""
_NOT_OWNED = "Failed to find ownership"
"""With the status 412: the topic moves between brokers, and has none at the moment.
Source: PersistentTopicsBase.java and PulsarWebResource.java, Pulsar 4.0.8."""
_RETRY_FOR_S = 10.0
_LOOK_S = 3.0
"""How long a start waits to see whose hosts are that do not answer."""
_RETRY_EVERY_S = 0.5
"""While a broker cannot, as when its bookies have just come back."""

_log = structlog.get_logger()


class TopicMetadata(Struct):
    """What Pulsar's metadata have of a partitioned topic."""

    partitions: int
    properties: dict[str, str] | None = None


_CONTENT_TYPES: dict[type[object], str] = {
    TopicMetadata: "application/vnd.partitioned-topic-metadata+json"
}
"""Of bodies that are not just JSON."""


class NotPermittedError(LogUnavailableError):
    """Pulsar does not let us do this; names the request."""


class ForeignAdminError(LogUnavailableError):
    """All hosts are of another Pulsar cluster."""


class AdminRefusedError(LogUnavailableError):
    """Pulsar answered that it will not.

    Args:
        status: The HTTP status.
        text: What was asked and what Pulsar said.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.passes = status >= HTTPStatus.INTERNAL_SERVER_ERROR or (
            status == HTTPStatus.PRECONDITION_FAILED and _NOT_OWNED in text
        )
        """Whether asking again soon may work."""


class Rest:
    """The admin REST of a cluster.

    Args:
        url: `http://host:port`, or several hosts with commas between.
        authentication: Who we are; asked at each request.
        tls: Whom to trust and what to show; asked at each request, and a connection is
            kept for as long as that is the same. None: as Python does.
        timeout_s: How long each host may take.
    """

    def __init__(
        self,
        url: str,
        *,
        authentication: Authentication | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        scheme, _, hosts = url.partition("://")
        self._bases = [f"{scheme}://{host.strip('/')}" for host in hosts.split(",")]
        self._authentication = authentication or Unauthenticated()
        self._tls = tls
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self.expected: Expected | None = None
        """What each host has to show before it is asked; None: nothing."""
        self._shown: set[str] = set()
        """The hosts that have shown it, and have answered since."""
        self._told: set[str] = set()
        """The hosts of another cluster that people were told of."""

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, path: str, body: object = None) -> bytes:
        """One request, again where the broker failed at it."""
        until_s = time.monotonic() + _RETRY_FOR_S
        while True:
            try:
                return await self._call_once(method, path, body)
            except AdminRefusedError as error:
                if not error.passes:
                    raise
                if time.monotonic() >= until_s:
                    raise
            await asyncio.sleep(_RETRY_EVERY_S)

    async def _call_once(self, method: str, path: str, body: object) -> bytes:
        """One request, at the first host that answers."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._timeout_s)
            )
        failure: Exception | None = None
        for base in list(self._bases):
            try:
                complaint = await self._complaint(base)
                if complaint is None:
                    return await self._ask(method, f"{base}/admin/v2/{path}", body)
                if base not in self._told:
                    self._told.add(base)
                    _log.error(complaint)
                failure = failure or ForeignAdminError(complaint)
            except PulsarUnavailableError as error:
                raise LogUnavailableError(
                    f"cannot sign in to Pulsar: {error}; see docs/pulsar.md, Signing in"
                ) from error
            except (aiohttp.ClientError, TimeoutError) as error:
                failure = error
                self._shown.discard(base)
                # The next call begins with a host that may be up.
                self._bases.remove(base)
                self._bases.append(base)
        if isinstance(failure, ForeignAdminError):
            raise failure
        raise LogUnavailableError(
            f"Pulsar's admin REST at {', '.join(self._bases)} does not answer: "
            f"{explained(str(failure) or 'time-out')}"
        ) from failure

    async def look_at_hosts(self) -> None:
        """See which hosts are of the cluster while its brokers are there.

        Who serves the topic that tells it may be away when the second host is needed.
        """

        async def look(base: str) -> None:
            with suppress(LogError, PulsarError, aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._complaint(base)

        await asyncio.gather(*map(look, self._bases))

    async def _complaint(self, base: str) -> str | None:
        """Why a host is not asked; None where it is."""
        if self.expected is None or base in self._shown:
            return None
        path = schema_path(self.expected.topic)
        try:
            found = schema_in(await self._ask("GET", f"{base}/admin/v2/{path}", None))
        except AdminRefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found = b""
        complaint = self.expected.complaint(base, found)
        if complaint is None:
            self._shown.add(base)
        return complaint

    async def _ask(self, method: str, url: str, body: object) -> bytes:
        """One request, at this host or the one that it sends us on to."""
        first = where = URL(url, encoded=True)
        for _ in range(1 + _REDIRECTS):
            try:
                status, answer, onward = await self._exchange(method, where, body)
            except (aiohttp.ClientError, TimeoutError) as error:
                if where is first:
                    raise
                # Who sent us there is well, and will know of it after a while.
                raise AdminRefusedError(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"{method} {first.path}: {where.authority}, which Pulsar sent us "
                    f"to, does not answer: {reason_of(error)}",
                ) from error
            if status != HTTPStatus.TEMPORARY_REDIRECT:
                break
            where = where.join(URL(onward, encoded=True))
            if where.scheme != first.scheme:
                break
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return answer
        reason = _reason(status, answer)
        if status == HTTPStatus.TEMPORARY_REDIRECT:
            reason = f"{status} sent on to {where}"
        text = f"{method} {first.path}: {reason}"
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise NotPermittedError(f"Pulsar does not permit {text}")
        raise AdminRefusedError(status, f"Pulsar refused {text}")

    async def _exchange(
        self, method: str, where: URL, body: object
    ) -> tuple[int, bytes, str]:
        """Status and content of one answer, and where it sends us on to.

        Brokers send us on to each other, and each wants to see the token; aiohttp would
        show it to the first alone.
        """
        assert self._session is not None
        proof = await self._authentication.proof()
        async with self._session.request(
            method,
            where,
            data=None if body is None else msgspec.json.encode(body),
            headers={
                "Content-Type": _CONTENT_TYPES.get(type(body), "application/json"),
                **headers(self._authentication, proof),
            },
            allow_redirects=False,
            ssl=True if self._tls is None else self._tls(),
        ) as response:
            onward = response.headers.get("Location", "")
            if response.status == HTTPStatus.UNAUTHORIZED:
                self._authentication.refused(proof)
            return response.status, await response.read(), onward


def local_path(full_name: str) -> str:
    """`persistent://tenant/namespace/topic` as paths have it, without its domain."""
    parts = full_name.partition("://")[2].split("/", 2)
    return "/".join(quote(part, safe="") for part in parts)


def schema_path(full_name: str) -> str:
    """Where the schemas of a topic are, which is named in full."""
    return f"schemas/{local_path(full_name)}/schema"


def schema_in(answer: bytes) -> bytes:
    """The schema that Pulsar shows there."""
    return str(msgspec.json.decode(answer)["data"]).encode()


def _reason(status: int, answer: bytes) -> str:
    try:
        return f"{status} {msgspec.json.decode(answer)['reason']}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"{status} {answer[:200].decode(errors='replace')}"
