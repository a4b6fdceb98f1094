"""Changes of topics on brokers that share a log, beside deletions of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ropeway.gateway.node.deletions import without
from ropeway.gateway.node.topic_changes import TopicError
from tests.gateway.node.test_topics import route_of, topic, two_on_one_log
from tests.remoting import looped, until

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_what_a_broker_deleted_is_not_given_to_another_while_it_is_stored(
    tmp_path: Path,
):
    async with two_on_one_log(tmp_path) as (one, other):
        await one.put(topic("t", 2))
        await until(lambda: "t" in other._routes.topics)
        await other.put(topic("t", 2))
        await one.delete("t")
        await until(lambda: "broker-0" not in route_of(other, "t"))
        await other.put(topic("t", 4))
        assert route_of(other, "t") == {"broker-1": [2, 3, 4, 5]}


@looped
async def test_a_broker_that_deleted_its_queues_gets_them_in_the_next_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with two_on_one_log(tmp_path) as (one, other):
        await one.put(topic("t", 2))
        await until(lambda: "t" in other._routes.topics)
        await other.put(topic("t", 2))
        await until(lambda: "broker-1" in route_of(one, "t"))
        await one.delete("t")
        made: list[tuple[list[int], int]] = []
        create = one._log.create

        async def note(name, numbers, entry_format, generation, _) -> None:
            made.append((list(numbers), generation))
            await create(name, numbers, entry_format, generation)

        monkeypatch.setattr(one._log, "create", note)
        await one.put(topic("t", 2))
        setup = one._routes.topics["t"]
        assert setup.route == {"broker-0": [0, 1], "broker-1": [2, 3]}
        assert (setup.generations, setup.generation) == ({"broker-0": 1}, 1)
        assert made == [([0, 1], 1)]


@looped
async def test_a_plan_that_a_deletion_was_faster_than_leaves_nothing_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with two_on_one_log(tmp_path) as (one, _):
        await one.put(topic("t", 2))
        create, delete = one._log.create, one._log.delete
        deleted: list[int] = []

        async def deleted_meanwhile(name, numbers, entry_format, generation, _) -> None:
            await create(name, numbers, entry_format, generation)
            if generation == 0:
                await one._routes.change_topic(
                    "t", lambda old: without(old, ["broker-0"])
                )

        async def note(name, generation=0) -> None:
            deleted.append(generation)
            await delete(name, generation)

        monkeypatch.setattr(one._log, "create", deleted_meanwhile)
        monkeypatch.setattr(one._log, "delete", note)
        made = await one.put(topic("t", 4))
        assert len(made.partitions) == 4
        assert one._routes.topics["t"].generations == {"broker-0": 1}
        assert 0 in deleted


@looped
async def test_a_topic_that_migrates_stays_on_its_broker(tmp_path: Path):
    async with two_on_one_log(tmp_path) as (one, other):
        for changes in ({"mirrored": True}, {"cut_offsets": [7, 7]}):
            await one.put(replace(topic("t", 2), **changes))
            await until(lambda: "t" in other._routes.topics)
            # Who looked before it was a mirror is refused as well.
            looks = other._routes.topics
            for seen in (looks, {**looks, "t": topic("t", 2)}):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(other.changes, "_routes", Seen(other._routes, seen))
                    with pytest.raises(TopicError, match="on broker broker-0, and get"):
                        await other.put(topic("t", 2))
            await one.put(topic("t", 2))
        await until(lambda: not other._routes.topics["t"].is_migrating)
        await other.put(topic("t", 2))
        assert route_of(other, "t") == {"broker-0": [0, 1], "broker-1": [2, 3]}


class Seen:
    """Routes, with a look at topics from before."""

    def __init__(self, routes, topics) -> None:
        self._routes = routes
        self.topics = topics

    def __getattr__(self, name: str):
        return getattr(self._routes, name)
