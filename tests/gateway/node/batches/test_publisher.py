"""A committed batch comes to its queues once, wherever an earlier try has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node.backoff import Backoff
from ropeway.gateway.node.batches.publisher import Publisher
from ropeway.gateway.node.batches.records import MARK, Decided
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.storage.api import OutcomeUnknownError
from tests.broker_contexts import HOST, broker_of
from tests.remoting import looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.api import Done, Partition, RecordParts


class Uncertain:
    """A partition whose appends from one on are said to have an unknown outcome."""

    def __init__(self, partition: Partition, *, stores: bool) -> None:
        self._partition = partition
        self._stores = stores
        self.failures = 1

    def __getattr__(self, name: str):
        return getattr(self._partition, name)

    def append(self, made: list[RecordParts], store_ms: int, done: Done) -> None:
        if not self.failures:
            self._partition.append(made, store_ms, done)
            return
        self.failures -= 1
        error = OutcomeUnknownError("the log did not answer")
        if self._stores:
            self._partition.append(made, store_ms, lambda *_: done(-1, error))
        else:
            asyncio.get_running_loop().call_soon(done, -1, error)


@pytest.mark.rule("batches.md", "Of what is decided, nothing is delivered twice.")
@pytest.mark.parametrize("stores", [True, False])
@looped
async def test_an_append_of_unknown_outcome_is_looked_for(
    tmp_path: Path, stores: bool
) -> None:
    async with running(tmp_path) as (app, client):
        node = app.node
        for _ in range(3):
            await client.ask(sending("orders"), b"before")
        topic = node.topics.get("orders")
        real = topic.partitions[0]
        topic.partitions[0] = uncertain = Uncertain(real, stores=stores)
        offsets = [
            await node.batches.stage("sink", "orders", 0, encode_batch(entries), HOST)
            for entries in (
                [BatchEntry(0, b"a", "TAGS\x01t\x02"), BatchEntry(0, b"b", "")],
                [BatchEntry(0, b"c", "KEYS\x01k")],
            )
        ]
        publisher = Publisher(broker_of(node), "", Backoff("", node.log))
        batch = Decided("sink", 0, 0, {"broker-0": offsets}, {"orders": {0: 3}})
        await publisher.publish(77, batch)
        # As after a take-over that does not know of it.
        await publisher.publish(77, batch)
        found = (await client.ask(pulling("orders", 3))).messages()
        assert [one.body for one in found] == [b"a", b"b", b"c"]
        pairs = [properties.parse(one.properties) for one in found]
        assert [one[MARK] for one in pairs] == ["77:0", "77:1", "77:2"]
        assert pairs[0]["TAGS"] == "t"
        assert not uncertain.failures


@looped
async def test_messages_for_a_topic_that_was_deleted_are_dropped(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as (app, client):
        node = app.node
        await client.ask(sending("orders"), b"before")
        entries = encode_batch([BatchEntry(0, b"a", "")])
        gone = await node.batches.stage("sink", "gone", 0, entries, HOST)
        here = await node.batches.stage("sink", "orders", 0, entries, HOST)
        assert list(await node.batches.commit("sink", 0, {"broker-0": [here]})) == [
            "broker-0"
        ]
        publisher = Publisher(broker_of(node), "", Backoff("", node.log))
        batch = Decided("sink", 1, 0, {"broker-0": [gone]}, {"gone": {0: 0}})
        await publisher.publish(78, batch)
        assert node.topics.get("gone") is None
