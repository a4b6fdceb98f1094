"""What was committed is known, and delivered, by whoever leads next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.node.batches import BatchError, Batches
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.storage.api import OutcomeUnknownError
from tests.broker_contexts import HOST, broker_of
from tests.remoting import looped, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App


BROKER = "broker-0"
ENTRY = encode_batch([BatchEntry(0, b"x", "")])


async def stage(batches: Batches, *bodies: bytes) -> dict[str, list[int]]:
    """Stage messages for queue 0 of the topic."""
    entries = encode_batch([BatchEntry(0, body, "") for body in bodies])
    return {BROKER: [await batches.stage("sink", "orders", 0, entries, HOST)]}


async def next_leader(app: App, before: Batches) -> Batches:
    """Another service on the same log, as the node that leads next has it."""
    node = app.node
    await before.give_up()
    batches = Batches(broker_of(node), "", 2)
    await batches.take_over()
    return batches


@looped
async def test_a_batch_is_committed_once_and_the_next_leader_knows(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"before")
        batches = app.node.batches
        first = await stage(batches, b"a", b"b")
        assert await batches.commit("sink", 4, first) == first
        for _ in range(3):
            batches = await next_leader(app, batches)
            again = await stage(batches, b"a", b"b")
            assert await batches.commit("sink", 4, again) == first
            assert await batches.commit("sink", 3, again) == {}
            assert await batches.last("sink") == 4
        assert await batches.last("other") == -1
        floor = app.node.offsets.get(names.BATCHES_GROUP, names.BATCHES_TOPIC, 0)
        assert floor is not None
        assert floor > 0
        await batches.give_up()
        found = (await client.ask(pulling("orders", 1))).messages()
        assert [one.body for one in found] == [b"a", b"b"]


@looped
async def test_a_floor_ahead_of_the_log_is_of_before_a_backup_was_restored(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"before")
        batches, offsets = app.node.batches, app.node.offsets
        first = await stage(batches, b"a")
        await batches.commit("sink", 4, first)
        await batches.give_up()
        offsets.commit(names.BATCHES_GROUP, names.BATCHES_TOPIC, 0, 10_000)
        batches = await next_leader(app, batches)
        assert await batches.commit("sink", 4, await stage(batches, b"x")) == first
        await until(
            lambda: offsets.get(names.BATCHES_GROUP, names.BATCHES_TOPIC, 0) < 10_000
        )
        await batches.give_up()
        assert app.node.topics.get("orders").partitions[0].end == 2


@pytest.mark.rule("batches.md", "What is decided is delivered")
@looped
async def test_a_decision_without_its_messages_is_carried_out_by_the_next_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"before")
        batches = app.node.batches
        staged = await stage(batches, b"a", b"b")
        # As if it were killed between the two.
        with monkeypatch.context() as patch:
            patch.setattr(batches, "_publish", lambda *_: None)
            await batches.commit("sink", 0, staged)
        assert app.node.topics.get("orders").partitions[0].end == 1
        batches = await next_leader(app, batches)
        await until(lambda: app.node.topics.get("orders").partitions[0].end == 3)
        assert await batches.commit("sink", 0, await stage(batches, b"x")) == staged
        await batches.give_up()
        assert app.node.topics.get("orders").partitions[0].end == 3


@looped
async def test_a_decision_of_unknown_outcome_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"before")
        batches = app.node.batches
        staged = await stage(batches, b"a")
        real = batches._write

        async def unsure(*given):
            await real(*given)
            raise OutcomeUnknownError("the log did not answer")

        with monkeypatch.context() as patch:
            patch.setattr(batches, "_write", unsure)
            with pytest.raises(OutcomeUnknownError):
                await batches.commit("sink", 0, staged)
        assert await batches.commit("sink", 0, await stage(batches, b"x")) == staged
        await until(lambda: app.node.topics.get("orders").partitions[0].end == 2)
        found = (await client.ask(pulling("orders", 1))).messages()
        assert [one.body for one in found] == [b"a"]


@looped
async def test_only_its_own_staged_messages_make_a_batch(tmp_path: Path) -> None:
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"before")
        batches = app.node.batches
        staged = await stage(batches, b"a")
        with pytest.raises(BatchError, match="staged by producer sink, not by other"):
            await batches.commit("other", 0, staged)


@looped
async def test_more_producers_than_are_allowed_are_refused_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"before")
        batches = await next_leader(app, app.node.batches)
        for producer_id in ("one", "two"):
            assert await batches.commit(producer_id, 1, {}) == {}
        with pytest.raises(BatchError, match=r"2 producers .* allowed: 2, limits"):
            await batches.commit("three", 1, {})
        assert await batches.last("three") == -1
        staged = {BROKER: [await batches.stage("one", "orders", 0, ENTRY, HOST)]}
        assert await batches.commit("one", 2, staged) == staged
