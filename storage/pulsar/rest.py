"""Requests to Pulsar's admin REST, at whichever host answers: its only aiohttp code."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.authentication import Unauthenticated, headers
from ropeway.storage.pulsar.errors import PulsarUnavailableError
from ropeway.storage.pulsar.tls import explained

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from ropeway.storage.pulsar.authentication import Authentication

TIMEOUT_S = 30.0
"""As Pulsar's own admin client waits for (60 s), halved: a create is retried."""

_REDIRECTS = 5
"""From a broker to the one that has the topic; Pulsar sends us on with 307 alone."""
_NOT_OWNED = "Failed to find ownership"
"""With the status 412: the topic moves between brokers, and has none at the moment.
Source: PersistentTopicsBase.java and PulsarWebResource.java, Pulsar 4.0.8."""
_RETRY_FOR_S = 10.0
_RETRY_EVERY_S = 0.5
"""While a broker cannot, as when its bookies have just come back."""


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
                return await self._ask(method, f"{base}/admin/v2/{path}", body)
            except PulsarUnavailableError as error:
                raise LogUnavailableError(
                    f"cannot sign in to Pulsar: {error}; see docs/pulsar.md, Signing in"
                ) from error
            except (aiohttp.ClientError, TimeoutError) as error:
                failure = error
                # The next call begins with a host that may be up.
                self._bases.remove(base)
                self._bases.append(base)
        raise LogUnavailableError(
            f"Pulsar's admin REST at {', '.join(self._bases)} does not answer: "
            f"{explained(str(failure) or 'time-out')}"
        ) from failure

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
                    f"to, does not answer: {error or 'time-out'}",
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


def _reason(status: int, answer: bytes) -> str:
    try:
        return f"{status} {msgspec.json.decode(answer)['reason']}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"{status} {answer[:200].decode(errors='replace')}"
