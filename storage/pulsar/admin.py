"""The few calls of Pulsar's admin REST that the log needs."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from storage.api import LogUnavailableError
from storage.pulsar.authentication import Unauthenticated, headers
from storage.pulsar.errors import PulsarUnavailableError
from storage.pulsar.names import parse_partition

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from storage.pulsar.authentication import Authentication
    from storage.pulsar.names import PulsarName

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


class StoredLedger(NamedTuple):
    """A ledger, and where it is kept."""

    ledger_id: int
    bytes: int
    is_offloaded: bool


class Admin:
    """A cluster's admin REST.

    Args:
        url: `http://host:port`, or several hosts with commas between.
        authentication: Who we are; asked at each request.
        tls: Whom to trust and what to show; asked at each request, and a connection is
            kept for as long as that is the same. None: as Python does.
    """

    def __init__(
        self,
        url: str,
        *,
        authentication: Authentication | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        scheme, _, hosts = url.partition("://")
        self._bases = [f"{scheme}://{host.strip('/')}" for host in hosts.split(",")]
        self._authentication = authentication or Unauthenticated()
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def version(self) -> str:
        """The brokers' version, like `4.0.8`."""
        return (await self._call("GET", "brokers/version")).decode().strip('" \n')

    async def configuration(self) -> dict[str, str] | None:
        """The broker's settings; None where only its owner may see them."""
        try:
            answer = await self._call("GET", "brokers/configuration/runtime")
        except NotPermittedError:
            return None
        return msgspec.json.decode(answer, type=dict[str, str])

    async def policies(self, space: str) -> dict[str, Any] | None:
        """The policies of `tenant/namespace`; None where there is no such one."""
        try:
            answer = await self._call("GET", f"namespaces/{space}")
        except AdminRefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return msgspec.json.decode(answer, type=dict[str, Any])

    async def make_namespace(self, space: str) -> None:
        """Make `tenant/namespace`, and its tenant; where they are there it is fine."""
        try:
            await self._make(f"namespaces/{space}", {})
        except AdminRefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            clusters = msgspec.json.decode(await self._call("GET", "clusters"))
            # What stands for all clusters of a geo-replicated instance is none itself.
            body = {"allowedClusters": [one for one in clusters if one != "global"]}
            await self._make(f"tenants/{space.partition('/')[0]}", body)
            await self._make(f"namespaces/{space}", {})

    async def _make(self, path: str, body: object) -> None:
        try:
            await self._call("PUT", path, body)
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def set_property(self, space: str, key: str, value: str) -> None:
        """Set a property of a namespace; others stay as they are."""
        await self._call("PUT", f"namespaces/{space}/properties", {key: value})

    async def remove_property(self, space: str, key: str) -> None:
        """Remove a property of a namespace."""
        await self._call("DELETE", f"namespaces/{space}/property/{quote(key, safe='')}")

    async def set_policy(self, space: str, policy: str, value: object) -> None:
        """Set one policy of a namespace, named as in the REST's path."""
        await self._call("POST", f"namespaces/{space}/{policy}", value)

    async def topics(self, space: str) -> list[str]:
        """The full names of all topics of a namespace, partitions each by itself."""
        answer = await self._call("GET", f"persistent/{space}")
        return msgspec.json.decode(answer, type=list[str])

    async def partitions(self, name: PulsarName) -> int:
        """How many partitions a topic has; 0 where it is none."""
        try:
            answer = await self._call("GET", f"persistent/{name.path}/partitions")
        except AdminRefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return 0
            raise
        return int(msgspec.json.decode(answer)["partitions"])

    async def create(self, name: PulsarName, partitions: int) -> None:
        """Make a partitioned topic, or extend it, whoever else does so meanwhile."""
        path = f"persistent/{name.path}/partitions"
        known = await self.partitions(name)
        if not known:
            try:
                await self._call("PUT", path, partitions)
            except AdminRefusedError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                known = await self.partitions(name)
                if not known:
                    # What is in the way is what a deletion left.
                    raise
        if 0 < known < partitions:
            try:
                await self._call("POST", path, partitions)
            except AdminRefusedError:
                # Another node may have extended it further meanwhile.
                if await self.partitions(name) < partitions:
                    raise

    async def delete(self, name: PulsarName) -> None:
        """Delete a partitioned topic with all that is in it; absent ones are fine.

        Pulsar deletes partitions one by one. Where somebody else's deletion ended
        halfway, it knows no such topic any more, and keeps the rest of its partitions.
        """
        try:
            await self._call("DELETE", f"persistent/{name.path}/partitions?force=true")
        except AdminRefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            for full in await self.topics(f"{name.tenant}/{name.namespace}"):
                parsed = parse_partition(full)
                if parsed is not None and parsed[0] == name:
                    await self._delete_plain(full)

    async def _delete_plain(self, full_name: str) -> None:
        try:
            await self._call("DELETE", f"{_path(full_name)}?force=true")
        except AdminRefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    async def create_plain(self, full_name: str) -> None:
        """Make a topic without partitions, named in full; one that exists is fine."""
        try:
            await self._call("PUT", _path(full_name), {})
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def compact(self, full_name: str) -> None:
        """Have a topic compacted, named in full; not again while it is."""
        try:
            await self._call("PUT", f"{_path(full_name)}/compaction")
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def compaction(self, full_name: str) -> tuple[str, str]:
        """What the last compaction of a topic is: RUNNING, SUCCESS; and its error."""
        answer = await self._call("GET", f"{_path(full_name)}/compaction")
        status = msgspec.json.decode(answer)
        return status["status"], status.get("lastError") or ""

    async def compacted(self, full_name: str) -> tuple[int, int]:
        """How many entries, and bytes, a topic has that are compacted."""
        answer = await self._call("GET", f"{_path(full_name)}/internalStats")
        ledger = msgspec.json.decode(answer)["compactedLedger"]
        return max(ledger["entries"], 0), max(ledger["size"], 0)

    async def ledgers(self, name: PulsarName, number: int) -> list[tuple[int, int]]:
        """A partition's ledgers from the oldest, each with how many entries it has."""
        path = f"{_path(name.partition(number))}/internalStats"
        stats = msgspec.json.decode(await self._call("GET", path))
        found = [(one["ledgerId"], one["entries"]) for one in stats["ledgers"]]
        if found and not found[-1][1]:
            found[-1] = (found[-1][0], stats["currentLedgerEntries"])
        return found

    async def stored_ledgers(self, full_name: str) -> list[StoredLedger]:
        """A topic's ledgers from the oldest, and where each is kept."""
        stats = await self._call("GET", f"{_path(full_name)}/internalStats")
        return [
            StoredLedger(
                one["ledgerId"], max(one["size"], 0), bool(one.get("offloaded"))
            )
            for one in msgspec.json.decode(stats)["ledgers"]
        ]

    async def offload(self, full_name: str, before_ledger: int) -> None:
        """Have all ledgers of a topic before one offloaded; not again while it is."""
        to = {"ledgerId": before_ledger, "entryId": 0, "partitionIndex": -1}
        try:
            await self._call("PUT", f"{_path(full_name)}/offload", to)
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def offload_status(self, full_name: str) -> tuple[str, str]:
        """What the last offload of a topic is: RUNNING, SUCCESS; and its error."""
        status = msgspec.json.decode(
            await self._call("GET", f"{_path(full_name)}/offload")
        )
        return status["status"], status.get("lastError") or ""

    async def next_index(self, name: PulsarName, number: int) -> int:
        """The index (PIP-70) that a partition's newest ledger began at."""
        path = f"{_path(name.partition(number))}/internal-info"
        info = msgspec.json.decode(await self._call("GET", path))
        return int((info.get("properties") or {}).get("index", -1)) + 1

    async def position(
        self, name: PulsarName, number: int, index: int
    ) -> tuple[int, int] | None:
        """Ledger and entry of an index (PIP-70); None where the broker cannot tell."""
        path = f"{_path(name.partition(number))}/getMessageIdByIndex?index={index}"
        try:
            answer = await self._call("GET", path)
        except AdminRefusedError:
            return None
        found = msgspec.json.decode(answer)
        return found["ledgerId"], found["entryId"]

    async def _call(self, method: str, path: str, body: object = None) -> bytes:
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
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
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
            f"{failure or 'time-out'}"
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
                "Content-Type": "application/json",
                **headers(self._authentication, proof),
            },
            allow_redirects=False,
            ssl=True if self._tls is None else self._tls(),
        ) as response:
            onward = response.headers.get("Location", "")
            if response.status == HTTPStatus.UNAUTHORIZED:
                self._authentication.refused(proof)
            return response.status, await response.read(), onward


def _path(full_name: str) -> str:
    """`persistent://tenant/namespace/topic` as it stands in a path."""
    domain, _, rest = full_name.partition("://")
    return f"{domain}/" + "/".join(quote(part, safe="") for part in rest.split("/", 2))


def _reason(status: int, answer: bytes) -> str:
    try:
        return f"{status} {msgspec.json.decode(answer)['reason']}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"{status} {answer[:200].decode(errors='replace')}"
