"""Following queues: all that comes is noted, once, whoever stored it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.lite.store import Store
from ropeway.gateway.node import backoff
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.wire.commands import lite
from tests.gateway.lite.rig import PARENT, put_topic, rigged
from tests.gateway.pop.rig import Clock
from tests.remoting import looped, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_many_lite_topics_are_noted_and_found_again_after_a_restart(
    tmp_path: Path,
):
    clock = Clock()
    names = [f"room-{number}" for number in range(300)]
    async with rigged(tmp_path, clock) as rig:
        for name in names:
            asked = sending(PARENT, pairs={"__LITE_TOPIC": name})
            assert (await rig.client.ask(asked, name.encode())).code == 0
        await until(lambda: rig.lite.count() == len(names))
        parent = rig.lite._follower.parents[PARENT]
        before = dict.fromkeys(names)
        assert set(parent.catalogue.names()) == set(before)
        assert len({*parent.catalogue.get(names[0]).ends}) == 1
    async with rigged(tmp_path, clock) as rig:
        await until(lambda: rig.lite.count() == len(names))
        await until(rig.lite.is_idle)
        assert await rig.sync(lite.PARTIAL_ADD, names[7]) == 0
        assert (await rig.pop()).bodies == [names[7]]


@looped
async def test_messages_without_a_lite_topic_are_nobodys(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        assert (await rig.client.ask(sending(PARENT), b"x")).code == 0
        await rig.send("a", "0")
        assert rig.lite.count() == 1


@looped
async def test_an_index_that_does_not_fit_the_log_is_made_again(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.send("a", "0", "1")
        store = rig.lite._follower.store
        for queue_id in range(4):
            # Of another log, which had more in it.
            await store.run(Store.note, PARENT, queue_id, [], [], (99, 1))
    async with rigged(tmp_path, clock) as rig:
        await until(rig.lite.is_idle)
        await rig.add("a")
        assert (await rig.pop(poll_time=60_000)).bodies == ["0", "1"]


@looped
async def test_a_parent_that_gets_more_queues_is_followed_there_too(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.send("a", "0")
        await put_topic(rig.app, PARENT, {"lite.topic.expiration": "60"})
        await rig.add("a")
        await rig.send("a", "1")
        assert (await rig.pop()).bodies == ["0", "1"]


@looped
async def test_an_index_that_a_look_finds_damaged_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backoff, "RETRY_S", 0.01)

    def fail(*_: object) -> None:
        raise ValueError("damage that a test makes")

    async with rigged(tmp_path) as rig:
        await rig.send("a", "0")
        with pytest.raises(IndexLostError):
            await rig.lite._follower.store.run(fail)
        await until(lambda: not rig.lite._follower.parents)
        await until(lambda: rig.lite.count() == 1)
        await rig.add("a")
        assert (await rig.pop(poll_time=60_000)).bodies == ["0"]
