"""Asking brokers about compacted topics: requests that only Ropeway knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client.decompression import MAX_ANSWER_BYTES
from ropeway.client.received import read_answer
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.compaction import (
    CompactTopic,
    GetLatest,
    TopicCompaction,
)

if TYPE_CHECKING:
    from ropeway.client.instance import Instance
    from ropeway.client.message import ReceivedMessage

_COMPACT_S = 3600.0
"""How long a forced compaction may take."""


async def latest(instance: Instance, topic: str, key: str) -> ReceivedMessage | None:
    """The newest message of a key on all brokers; None where it has no body."""
    instance.ensure_started()
    route = await instance.routes.fetch(topic)
    found: list[ReceivedMessage] = []
    for name in sorted(route.brokers):
        response = await instance.connections.request(
            instance.routes.master(name),
            GetLatest(topic=topic, key=key),
            expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        if response.code == ResponseCode.SUCCESS:
            found += await read_answer(response.body, name, MAX_ANSWER_BYTES)
    newest = max(found, key=lambda message: message.store_ms, default=None)
    return newest if newest is not None and newest.body else None


async def look(instance: Instance, topic: str, *, force: bool) -> list[TopicCompaction]:
    """How far each broker is; once it has compacted all, with `force`."""
    instance.ensure_started()
    route = await instance.routes.fetch(topic)
    found = []
    for name in sorted(route.brokers):
        response = await instance.connections.request(
            instance.routes.master(name),
            CompactTopic(topic=topic, force=force),
            timeout_s=_COMPACT_S if force else None,
        )
        found.append(response.json(TopicCompaction))
    return found
