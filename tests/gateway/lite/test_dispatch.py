"""What a pop of lite topics gets: in order, bounded, and the same again if asked so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.lite import dispatch
from ropeway.gateway.wire.commands import lite
from ropeway.storage.api import LogUnavailableError
from tests.gateway.lite.rig import GROUP, INVISIBLE_MS, PARENT, rigged
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@looped
async def test_a_pop_takes_from_several_lite_topics_up_to_its_count(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a", "b")
        await rig.send("a", "a0", "a1")
        await rig.send("b", "b0", "b1")
        await rig.send("a", "a2")
        first = await rig.pop(max_msg_num=4)
        assert first.bodies == ["a0", "a1", "a2", "b0"]
        assert first.counts == [0, 0, 0, 0]
        # What is left of b waits for what is out of it.
        assert (await rig.pop()).bodies == []
        assert await rig.ack(first, 3, "b") == 0
        assert (await rig.pop()).bodies == ["b1"]


@looped
async def test_what_is_not_acknowledged_in_time_comes_again(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0", "1")
        first = await rig.pop()
        assert await rig.ack(first, 1) == 0
        await rig.pass_time(INVISIBLE_MS - 1)
        assert (await rig.pop()).bodies == []
        await rig.pass_time(1)
        again = await rig.pop()
        # In order: what stands behind comes again, too.
        assert (again.bodies, again.counts) == (["0", "1"], [1, 1])
        assert await rig.ack(first) != 0
        assert [await rig.ack(again, at) for at in (0, 1)] == [0, 0]
        await rig.pass_time(INVISIBLE_MS)
        assert (await rig.pop()).bodies == []


@looped
async def test_a_message_that_is_kept_longer_blocks_longer(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0", "1")
        found = await rig.pop()
        renewed = await rig.keep(found, 2 * INVISIBLE_MS)
        assert renewed is not None
        assert (renewed.pop_time, renewed.invisible_time) == (
            found.reply.pop_time,
            2 * INVISIBLE_MS,
        )
        await rig.pass_time(INVISIBLE_MS)
        assert (await rig.pop()).bodies == []
        assert await rig.keep(found, 0, suspend=True) is not None
        await rig.pass_time(1)
        assert (await rig.pop()).bodies == ["0", "1"]
        assert await rig.keep(found, 0) is None


@looped
async def test_the_same_attempt_gets_the_same_again(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")
        for _ in range(2):
            found = await rig.pop(attempt_id="x")
            assert (found.bodies, found.counts) == (["0"], [0])
        assert (await rig.pop(attempt_id="y")).bodies == []


@looped
async def test_a_fault_of_the_log_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")

        async def fail(*_):
            raise LogUnavailableError("the disk is away")

        with monkeypatch.context() as broken:
            broken.setattr("ropeway.gateway.lite.dispatch._read", fail)
            refused = await rig.client.ask(rig.header())
            assert refused.code != 0
        assert (await rig.pop()).bodies == ["0"]


@looped
async def test_a_lite_topic_lies_in_one_queue_and_messages_elsewhere_come_too(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")
        ends = rig.lite._follower.parents[PARENT].catalogue.get("a").ends
        (queue_id,) = ends
        served = rig.app.node.topics.get(PARENT)
        other = served.partitions[(queue_id + 1) % 4]
        record = await served.partitions[queue_id].read(0, 1, 1 << 20)
        # As if there had been another number of queues.
        other.append([(bytes(record.data[0]), 0, ())], 1, lambda *_: None)
        await rig.send("a", "1")
        found = await rig.pop(max_msg_num=2)
        assert len(found.messages) == 2
        assert await rig.sync(lite.COMPLETE_ADD, "a") == 0


@looped
async def test_what_comes_during_a_pop_is_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with rigged(tmp_path) as rig:
        await rig.add("a", "b")
        await rig.send("a", "a0")
        await rig.send("b", "b0")
        real = dispatch._read

        async def read(*arguments):
            # As if there were more of each lite topic by now.
            rig.lite.subscribers.announce(PARENT, ["a", "b"])
            return await real(*arguments)

        with monkeypatch.context() as slow:
            slow.setattr(dispatch, "_read", read)
            found = await rig.pop(attempt_id="x")
        assert found.bodies == ["a0", "b0"]
        assert await rig.ack(found, 0, "a") == 0
        await rig.send("a", "a1")
        assert (await rig.pop(attempt_id="y")).bodies == ["a1"]


@looped
async def test_a_pop_waits_until_the_index_is_open(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")
        follower = rig.lite._follower
        follower._stop()
        one = rig.lite.subscribers.find(GROUP, "one")
        await rig.lite.pop(one, 1, INVISIBLE_MS, None)
        # What may be there cannot be looked at: there is nothing to do but wait.
        assert not await rig.lite.wait(one, 0.01)
        waiting = asyncio.ensure_future(rig.pop(poll_time=60_000))
        await until(lambda: rig.lite._waiting.taken)
        follower._open = True
        follower.follow(rig.app.node.topics.get(PARENT))
        assert (await waiting).bodies == ["0"]
