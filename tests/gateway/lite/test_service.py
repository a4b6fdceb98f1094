"""Lite topics of a node: over restarts, by time, and shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands import lite
from ropeway.gateway.wire.commands.admin import DeleteTopic
from ropeway.routing.api import Group
from tests.gateway.lite.rig import PARENT, put_topic, rigged
from tests.gateway.pop.rig import Clock
from tests.remoting import looped, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

QUEUE = f"%LMQ%${PARENT}$a"
MINUTE_MS = 60_000


@looped
async def test_progress_outlives_a_restart_and_subscriptions_are_said_again(
    tmp_path: Path,
):
    clock = Clock()
    async with rigged(tmp_path, clock) as rig:
        await rig.add("a")
        await rig.send("a", "0", "1", "2")
        found = await rig.pop(max_msg_num=1)
        assert await rig.ack(found) == 0
    async with rigged(tmp_path, clock) as rig:
        assert (await rig.pop()).bodies == []
        assert await rig.sync(lite.COMPLETE_ADD, "a") == 0
        await until(lambda: "a" in rig.lite._follower.parents[PARENT].catalogue)
        assert (await rig.pop(poll_time=60_000)).bodies == ["1", "2"]


@looped
async def test_a_lost_index_is_made_again_while_the_node_runs(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")
        assert (await rig.pop()).bodies == ["0"]
        follower = rig.lite._follower

        before = follower.parents[PARENT]
        real = follower.store.run

        async def lost(*_, **__):
            raise IndexLostError("the disk is gone")

        follower.store.run = lost
        answer = await rig.client.ask(
            sending(PARENT, pairs={"__LITE_TOPIC": "a"}), b"1"
        )
        assert answer.code == 0
        await until(lambda: PARENT not in follower.parents)
        follower.store.run = real
        await until(lambda: follower.parents.get(PARENT) not in (None, before))
        await until(rig.lite.is_idle)
        await rig.pass_time(2 * MINUTE_MS)
        found = await rig.pop(poll_time=60_000)
        assert found.bodies == ["0", "1"]
        assert found.counts == [1, 0]


@looped
async def test_a_client_that_is_silent_wants_nothing_any_more(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.add("a", client_id="two")
        await rig.pass_time(2 * MINUTE_MS)
        assert await rig.sync(lite.COMPLETE_ADD, "a", client_id="two") == 0
        await rig.pass_time(2 * MINUTE_MS)
        (left,) = rig.lite.subscribers
        assert left.client_id == "two"


@looped
async def test_a_deleted_topic_takes_its_lite_topics_with_it(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        await rig.send("a", "0")
        found = await rig.pop()
        assert await rig.ack(found) == 0
        assert (await rig.client.ask(DeleteTopic(topic=PARENT))).code == 0
        await until(rig.lite.is_idle)
        assert rig.lite.count() == 0
        assert not rig.lite._progress.places(QUEUE)
        assert not list(rig.lite.subscribers)
        await put_topic(rig.app, PARENT)
        await rig.add("a")
        await rig.send("a", "new")
        assert (await rig.pop()).bodies == ["new"]


@looped
async def test_two_clients_share_a_lite_topic_and_each_message_comes_once(
    tmp_path: Path,
):
    async with rigged(tmp_path) as rig:
        for client_id in ("one", "two"):
            await rig.add("a", client_id=client_id)
        await rig.send("a", "0", "1")
        first = await rig.pop(max_msg_num=1)
        assert (await rig.pop(client_id="two")).bodies == []
        assert await rig.ack(first) == 0
        assert (await rig.pop(client_id="two")).bodies == ["1"]
        assert (await rig.pop()).bodies == []


@looped
async def test_groups_have_progress_of_their_own(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.app.node.groups.put(
            Group(name="others", attributes={"lite.bind.topic": PARENT})
        )
        await rig.add("a")
        assert await rig.sync(lite.PARTIAL_ADD, "a", group="others") == 0
        await rig.send("a", "0")
        assert (await rig.pop()).bodies == ["0"]
        assert (await rig.pop(consumer_group="others")).bodies == ["0"]


@looped
async def test_nothing_is_idle_before_the_index_is_open(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        assert rig.lite.is_idle()
        rig.lite._follower._stop()
        assert not rig.lite.is_idle()


@looped
async def test_one_topic_leaves_lite_topics_to_the_others(tmp_path: Path):
    """Before, who sent to one lite topic after the other kept all others out."""
    async with rigged(tmp_path, limits=LimitsConfig(lite_topics=4)) as rig:
        for name in ("a", "b", "c"):
            await rig.send(name, "x")
            await until(
                lambda n=name: n in rig.lite._follower.parents[PARENT].catalogue
            )
        more = await rig.client.ask(sending(PARENT, pairs={"__LITE_TOPIC": "d"}), b"x")
        assert more.code == ResponseCode.LMQ_QUOTA_EXCEEDED
        await put_topic(rig.app, "other")
        other = sending("other", pairs={"__LITE_TOPIC": "a"})
        assert (await rig.client.ask(other, b"x")).code == 0


ALL = {"lite.sub.wildcard": ""}


@looped
async def test_a_client_of_a_group_that_wants_all_names_none(tmp_path: Path):
    async with rigged(tmp_path, of_group=ALL) as rig:
        await rig.send("a", "a0")
        assert await rig.sync(lite.PARTIAL_ADD, "a") == ResponseCode.ILLEGAL_OPERATION
        assert not (await rig.pop()).bodies
        assert await rig.sync(lite.COMPLETE_ADD) == 0
        await rig.send("b", "b0")
        found = await rig.pop()
        assert found.bodies == ["a0", "b0"]
        assert await rig.ack(found, 0, "a") == 0
        # It says so again, and gets nothing twice; nor does it end any.
        assert await rig.sync(lite.COMPLETE_ADD, "b") == 0
        assert await rig.sync(lite.PARTIAL_REMOVE, "a") == 0
        await rig.send("a", "a1")
        await rig.send("b", "b1")
        assert (await rig.pop()).bodies == ["a1"]
        assert await rig.ack(found, 1, "b") == 0
        assert (await rig.pop()).bodies == ["b1"]
        assert await rig.sync(lite.COMPLETE_REMOVE) == 0
        await rig.send("c", "c0")
        assert not (await rig.pop()).bodies


@looped
async def test_two_that_want_all_share_the_messages(tmp_path: Path):
    async with rigged(tmp_path, of_group=ALL) as rig:
        for client_id in ("one", "two"):
            assert await rig.sync(lite.COMPLETE_ADD, client_id=client_id) == 0
        for name in "abcd":
            await rig.send(name, name)
        first = await rig.pop(max_msg_num=2)
        second = await rig.pop(client_id="two")
        assert (first.bodies, second.bodies) == (["a", "b"], ["c", "d"])


@looped
async def test_a_group_wants_all_as_long_as_its_attribute_is_there(tmp_path: Path):
    async with rigged(tmp_path) as rig:
        await rig.add("a")
        bound = {"lite.bind.topic": PARENT}
        groups = rig.app.node.groups
        await groups.put(Group(name="readers", attributes={**bound, **ALL}))
        assert await rig.sync(lite.COMPLETE_ADD, "a") == 0
        await rig.send("b", "b0")
        assert (await rig.pop()).bodies == ["b0"]
        await groups.put(Group(name="readers", attributes=bound))
        assert await rig.sync(lite.COMPLETE_ADD, "a") == 0
        await rig.send("c", "c0")
        await rig.send("a", "a0")
        assert (await rig.pop()).bodies == ["a0"]


@looped
async def test_what_comes_again_comes_to_who_wants_all(tmp_path: Path):
    async with rigged(tmp_path, of_group=ALL) as rig:
        await rig.sync(lite.COMPLETE_ADD)
        await rig.send("a", "0")
        assert (await rig.pop(invisible_time=MINUTE_MS)).bodies == ["0"]
        await rig.pass_time(MINUTE_MS + 1)
        found = await rig.pop()
        assert (found.bodies, found.counts) == (["0"], [1])


@looped
async def test_a_restart_gives_all_to_who_says_again_that_it_wants_all(tmp_path: Path):
    clock = Clock()
    async with rigged(tmp_path, clock, of_group=ALL) as rig:
        await rig.sync(lite.COMPLETE_ADD)
        await rig.send("a", "a0")
        await rig.send("b", "b0")
        found = await rig.pop(max_msg_num=1)
        assert await rig.ack(found, 0, "a") == 0
    async with rigged(tmp_path, clock, of_group=ALL) as rig:
        assert not (await rig.pop()).bodies
        await rig.sync(lite.COMPLETE_ADD)
        assert (await rig.pop()).bodies == ["b0"]


@looped
async def test_what_expires_is_no_news_to_who_wants_all(tmp_path: Path):
    attributes = {"lite.topic.expiration": "20"}
    async with rigged(tmp_path, attributes=attributes, of_group=ALL) as rig:
        await rig.sync(lite.COMPLETE_ADD)
        await rig.send("a", "0")
        (one,) = rig.lite.subscribers
        assert list(one.ready) == ["a"]
        for _ in range(11):
            await rig.pass_time(2 * MINUTE_MS)
            await rig.sync(lite.COMPLETE_ADD)
        await until(lambda: rig.lite.count() == 0)
        assert list(rig.lite.subscribers) == [one]
        assert not one.ready


@looped
async def test_a_look_on_request_is_at_all_that_is_wanted(tmp_path: Path):
    async with rigged(tmp_path, of_group=ALL) as rig:
        await rig.sync(lite.COMPLETE_ADD)
        await rig.send("a", "0")
        (one,) = rig.lite.subscribers
        one.ready.clear()
        rig.lite.look_again("readers", None)
        assert (await rig.pop()).bodies == ["0"]
