"""The few calls of Pulsar's admin REST that the log needs."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.rest import (
    AdminRefusedError,
    NotPermittedError,
    Rest,
    TopicMetadata,
    local_path,
    schema_in,
    schema_path,
)
from ropeway.storage.pulsar.topic_names import parse_partition

if TYPE_CHECKING:
    from ropeway.storage.pulsar.topic_names import PulsarName

SHOWN_S = (0.1,) * 10 + (1.0,) * 29
"""When to look again for what was changed: brokers answer from caches for a moment, and
of changes of one namespace's policies at the same moment Pulsar may lose some."""


class StoredLedger(NamedTuple):
    """A ledger, and where it is kept."""

    ledger_id: int
    bytes: int
    is_offloaded: bool


class Admin(Rest):
    """The calls of a cluster's admin REST."""

    async def version(self) -> str:
        """The brokers' version, like `4.0.8`."""
        return (await self.call("GET", "brokers/version")).decode().strip('" \n')

    async def get(self, path: str) -> tuple[int, bytes]:
        """Ask for anything, once; the status and the content, empty of a refusal.

        Raises:
            ConnectionError: Nobody answers, or there is nothing to sign in with.
        """
        try:
            return HTTPStatus.OK, await self._call_once("GET", path, None)
        except NotPermittedError:
            return HTTPStatus.FORBIDDEN, b""
        except AdminRefusedError as error:
            return error.status, b""
        except LogUnavailableError as error:
            raise ConnectionError(str(error)) from error

    async def configuration(self) -> dict[str, str] | None:
        """The broker's settings; None where only its owner may see them."""
        try:
            answer = await self.call("GET", "brokers/configuration/runtime")
        except NotPermittedError:
            return None
        return msgspec.json.decode(answer, type=dict[str, str])

    async def policies(self, space: str) -> dict[str, Any] | None:
        """The policies of `tenant/namespace`; None where there is no such one."""
        try:
            answer = await self.call("GET", f"namespaces/{space}")
        except AdminRefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return msgspec.json.decode(answer, type=dict[str, Any])

    async def make_namespace(self, space: str) -> dict[str, Any]:
        """Make `tenant/namespace`, and its tenant; where they are there it is fine.

        Returns:
            Its policies, once Pulsar shows them: until then it takes no others.

        Raises:
            LogUnavailableError: It does not.
        """
        try:
            await self._make(f"namespaces/{space}", {})
        except AdminRefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            body = {"allowedClusters": await self._clusters()}
            await self._make(f"tenants/{space.partition('/')[0]}", body)
            await self._make(f"namespaces/{space}", {})
        for wait_s in SHOWN_S:
            found = await self.policies(space)
            if found is not None:
                return found
            await asyncio.sleep(wait_s)
        raise LogUnavailableError(
            f"Pulsar has made the namespace {space}, and does not show it within "
            f"{sum(SHOWN_S):g} s"
        )

    async def _clusters(self) -> list[str]:
        """Where a tenant may be; a Pulsar that starts names no cluster for a moment."""
        for wait_s in SHOWN_S:
            found = msgspec.json.decode(await self.call("GET", "clusters"))
            # What stands for all clusters of a geo-replicated instance is none itself.
            if names := [one for one in found if one != "global"]:
                return names
            await asyncio.sleep(wait_s)
        raise LogUnavailableError(
            f"Pulsar names no cluster within {sum(SHOWN_S):g} s, so that no tenant can "
            "be made: `pulsar-admin clusters list`"
        )

    async def _make(self, path: str, body: object) -> None:
        try:
            await self.call("PUT", path, body)
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def set_property(self, space: str, key: str, value: str) -> None:
        """Set a property of a namespace; others stay as they are."""
        await self.call("PUT", f"namespaces/{space}/properties", {key: value})

    async def remove_property(self, space: str, key: str) -> None:
        """Remove a property of a namespace."""
        await self.call("DELETE", f"namespaces/{space}/property/{quote(key, safe='')}")

    async def set_policy(self, space: str, policy: str, value: object) -> None:
        """Set one policy of a namespace, named as in the REST's path."""
        await self.call("POST", f"namespaces/{space}/{policy}", value)

    async def topics(self, space: str) -> list[str]:
        """The full names of all topics of a namespace, partitions each by itself."""
        answer = await self.call("GET", f"persistent/{space}")
        return msgspec.json.decode(answer, type=list[str])

    async def partitions(self, name: PulsarName) -> int:
        """How many partitions a topic has; 0 where it is none."""
        found = await self.metadata(name)
        return found.partitions if found is not None else 0

    async def metadata(self, name: PulsarName) -> TopicMetadata | None:
        """The metadata of a partitioned topic; None where there is no such one."""
        try:
            answer = await self.call("GET", f"persistent/{name.path}/partitions")
        except AdminRefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        found = msgspec.json.decode(answer, type=TopicMetadata)
        return found if found.partitions else None

    async def claim(self, name: PulsarName, properties: dict[str, str]) -> bool:
        """Make a partitioned topic with these properties; False where there is one.

        Of all who do so at once one succeeds: Pulsar's metadata have it in one step.
        Source: PartitionedTopicResources.java, Pulsar 4.0.8.
        """
        body = TopicMetadata(1, properties)
        try:
            await self.call("PUT", f"persistent/{name.path}/partitions", body)
        except AdminRefusedError as error:
            if error.status == HTTPStatus.CONFLICT:
                return False
            raise
        return True

    async def create(self, name: PulsarName, partitions: int) -> None:
        """Make a partitioned topic, or extend it, whoever else does so meanwhile."""
        path = f"persistent/{name.path}/partitions"
        known = await self.partitions(name)
        if not known:
            try:
                await self.call("PUT", path, partitions)
            except AdminRefusedError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
                known = await self.partitions(name)
                if not known:
                    # What is in the way is what a deletion left.
                    raise
        if 0 < known < partitions:
            try:
                await self.call("POST", path, partitions)
            except AdminRefusedError:
                # Another node may have extended it further meanwhile.
                if await self.partitions(name) < partitions:
                    raise

    async def create_missing(self, name: PulsarName) -> None:
        """Make those partitions of a topic that it should have and has not."""
        await self.call("POST", f"persistent/{name.path}/createMissedPartitions")

    async def delete(self, name: PulsarName) -> None:
        """Delete a partitioned topic with all that is in it; absent ones are fine.

        Pulsar deletes partitions one by one. Where somebody else's deletion ended
        halfway, it knows no such topic any more, and keeps the rest of its partitions.
        """
        try:
            await self.call("DELETE", f"persistent/{name.path}/partitions?force=true")
        except AdminRefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            for full in await self.topics(f"{name.tenant}/{name.namespace}"):
                parsed = parse_partition(full)
                if parsed is not None and parsed[0] == name:
                    await self._delete_plain(full)

    async def _delete_plain(self, full_name: str) -> None:
        try:
            await self.call("DELETE", f"{_path(full_name)}?force=true")
        except AdminRefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    async def create_plain(self, full_name: str) -> None:
        """Make a topic without partitions, named in full; one that exists is fine."""
        try:
            await self.call("PUT", _path(full_name), {})
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def schema(self, full_name: str) -> bytes | None:
        """The newest schema of a topic, named in full; None where it has none."""
        try:
            return schema_in(await self.call("GET", schema_path(full_name)))
        except AdminRefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def set_schema(self, full_name: str, kind: str, definition: str) -> None:
        """Give a topic a newer schema, of a kind like AVRO."""
        body = {"type": kind, "schema": definition, "properties": {}}
        await self.call("POST", schema_path(full_name), body)

    async def compact(self, full_name: str) -> None:
        """Have a topic compacted, named in full; not again while it is."""
        try:
            await self.call("PUT", f"{_path(full_name)}/compaction")
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def compaction(self, full_name: str) -> tuple[str, str]:
        """What the last compaction of a topic is: RUNNING, SUCCESS; and its error."""
        answer = await self.call("GET", f"{_path(full_name)}/compaction")
        status = msgspec.json.decode(answer)
        return status["status"], status.get("lastError") or ""

    async def compacted(self, full_name: str) -> tuple[int, int]:
        """How many entries, and bytes, a topic has that are compacted."""
        answer = await self.call("GET", f"{_path(full_name)}/internalStats")
        ledger = msgspec.json.decode(answer)["compactedLedger"]
        return max(ledger["entries"], 0), max(ledger["size"], 0)

    async def ledgers(self, name: PulsarName, number: int) -> list[tuple[int, int]]:
        """A partition's ledgers from the oldest, each with how many entries it has."""
        path = f"{_path(name.partition(number))}/internalStats"
        stats = msgspec.json.decode(await self.call("GET", path))
        found = [(one["ledgerId"], one["entries"]) for one in stats["ledgers"]]
        if found and not found[-1][1]:
            found[-1] = (found[-1][0], stats["currentLedgerEntries"])
        return found

    async def stored_ledgers(self, full_name: str) -> list[StoredLedger]:
        """A topic's ledgers from the oldest, and where each is kept."""
        stats = await self.call("GET", f"{_path(full_name)}/internalStats")
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
            await self.call("PUT", f"{_path(full_name)}/offload", to)
        except AdminRefusedError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    async def offload_status(self, full_name: str) -> tuple[str, str]:
        """What the last offload of a topic is: RUNNING, SUCCESS; and its error."""
        status = msgspec.json.decode(
            await self.call("GET", f"{_path(full_name)}/offload")
        )
        return status["status"], status.get("lastError") or ""

    async def next_index(self, name: PulsarName, number: int) -> int:
        """The index (PIP-70) that a partition's newest ledger began at."""
        path = f"{_path(name.partition(number))}/internal-info"
        info = msgspec.json.decode(await self.call("GET", path))
        return int((info.get("properties") or {}).get("index", -1)) + 1

    async def position(
        self, name: PulsarName, number: int, index: int
    ) -> tuple[int, int] | None:
        """Ledger and entry of an index (PIP-70); None where the broker cannot tell."""
        path = f"{_path(name.partition(number))}/getMessageIdByIndex?index={index}"
        try:
            answer = await self.call("GET", path)
        except AdminRefusedError:
            return None
        found = msgspec.json.decode(answer)
        return found["ledgerId"], found["entryId"]


def _path(full_name: str) -> str:
    """`persistent://tenant/namespace/topic` as it stands in a path."""
    return f"{full_name.partition('://')[0]}/{local_path(full_name)}"
