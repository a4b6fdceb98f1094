"""Forgetting: what has expired, what retention has taken, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.lite.store import Store
from ropeway.gateway.wire.commands import lite
from tests.gateway.lite.rig import PARENT, rigged
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

QUEUE = f"%LMQ%${PARENT}$a"
MINUTE_MS = 60_000


@looped
async def test_lite_topics_expire_that_had_no_message_for_long(tmp_path: Path):
    attributes = {"lite.topic.expiration": "20"}
    async with rigged(tmp_path, attributes=attributes) as rig:
        await rig.add("a", "b")
        await rig.send("a", "a0")
        found = await rig.pop(max_msg_num=1)
        assert await rig.ack(found) == 0
        assert rig.lite._progress.places(QUEUE)
        await rig.pass_time(19 * MINUTE_MS)
        await rig.send("b", "b0")
        assert rig.lite.count() == 2
        await rig.pass_time(2 * MINUTE_MS)
        assert rig.lite.count() == 1
        assert not rig.lite._progress.places(QUEUE)
        await rig.send("a", "a1")
        # Its client was silent meanwhile, and says again what it wants.
        assert await rig.sync(lite.COMPLETE_ADD, "a", "b") == 0
        assert sorted((await rig.pop()).bodies) == ["a1", "b0"]


@looped
async def test_what_retention_has_taken_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")
        found = await rig.pop()
        assert await rig.ack(found) == 0
        parent = rig.lite._follower.parents[PARENT]
        (queue_id,) = parent.catalogue.get("a").ends
        store = rig.lite._follower.store
        assert await store.run(Store.offsets, PARENT, "a", queue_id, 0, 9) == [0]
        # As if the log had deleted it.
        firsts = [queue.partition.end for queue in parent.queues]
        monkeypatch.setattr(type(parent), "firsts", firsts)
        await rig.pass_time(MINUTE_MS)
        assert rig.lite.count() == 0
        assert not rig.lite._progress.places(QUEUE)
        assert await store.run(Store.offsets, PARENT, "a", queue_id, 0, 9) == []
        assert await store.run(Store.cut, PARENT, queue_id, 99, 9) == 0
