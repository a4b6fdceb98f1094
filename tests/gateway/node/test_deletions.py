"""Deletions of topics: what they leave in the routes, and what they make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ropeway.gateway.node import deletions
from ropeway.gateway.node.deletions import (
    GENERATION,
    applied,
    emptied,
    is_pending,
    outdated,
    renewed,
    taken,
    without,
)
from ropeway.gateway.node.names import DELETIONS_NAMESPACE
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import DeleteTopicInNamesrv
from ropeway.routing.api import Deletion, Topic
from ropeway.storage.api import LogUnavailableError
from tests.remoting import looped, running, until
from tests.requests import committing, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = Topic(
    name="orders",
    read_queue_nums=2,
    write_queue_nums=2,
    route={"a": [0, 1], "b": [2, 3]},
)


def test_a_broker_takes_its_own_queues_and_others_keep_theirs() -> None:
    one = without(ORDERS, ["a"])
    assert (one.route, one.generation, one.is_deleted) == ({"b": [2, 3]}, 1, False)
    assert one.deletions == [Deletion(generation=0, partitions=[0, 1], pending=["a"])]
    assert is_pending(one, "a")
    assert not is_pending(one, "b")
    assert without(one, ["a"]) is one
    assert without(None, ["a"]) is None
    # What it held is not in the way of the others' queues, nor are they taken again.
    assert applied(one, "a").deletions == [
        Deletion(generation=0, partitions=[0, 1], pending=[])
    ]
    assert taken(one, 0) == {0, 1}
    assert taken(one, 1) == set()


def test_what_was_deleted_is_kept_until_all_is_done_and_then_its_generation() -> None:
    both = without(without(ORDERS, ["a"]), ["b"])
    assert (both.route, both.generation, both.is_deleted) == ({}, 2, True)
    assert both.deletions == [
        Deletion(generation=0, partitions=[0, 1, 2, 3], pending=["a", "b"])
    ]
    empty = emptied(applied(both, "a"), [0])
    assert empty.deletions == [
        Deletion(generation=0, partitions=[0, 1, 2, 3], pending=["b"], stored=False)
    ]
    done = applied(empty, "b")
    assert done == Topic(
        name="orders", read_queue_nums=0, write_queue_nums=0, generation=2
    )
    assert done.is_deleted
    assert applied(done, "b") is done


def test_queues_of_another_generation_are_beside_those_of_the_first() -> None:
    again = renewed(ORDERS, without(ORDERS, ["a"]), {"a": [4, 5]}, 1)
    assert again.route == {"a": [4, 5], "b": [2, 3]}
    assert (again.generations, again.generation) == ({"a": 1}, 1)
    assert again.is_live(0)
    assert again.is_live(1)
    # A second deletion does not make an end of the first.
    twice = without(again, ["a"])
    assert [one.generation for one in twice.deletions] == [0, 1]
    assert (twice.generation, twice.generations) == (2, {})


def test_only_who_is_away_since_before_a_deletion_is_outdated() -> None:
    assert outdated(ORDERS, ["a"]) == []
    assert outdated(None, []) == []
    again = renewed(ORDERS, without(ORDERS, ["a"]), {"a": [4, 5]}, 1)
    assert outdated(again, ["a"]) == ["b"]
    assert outdated(again, ["a", "b"]) == []
    assert outdated(again, []) == ["b"]


async def ask_offset(client) -> str | None:
    fields = {"consumerGroup": "readers", "topic": "orders", "queueId": "0"}
    answer = await client.ask(14, fields=fields)
    return (answer.fields or {}).get("offset")


@pytest.mark.parametrize("step", ["flush", "delete", "applied", "emptied"])
@looped
async def test_an_embedded_log_has_nothing_deleted_after_an_end_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
):
    """What was deleted is not there again, though the log still had it."""
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"old")).code == 0
        assert (await client.ask(committing("orders", 0, 1))).code == 0
        failed: list[str] = []

        def fail(*_: object, **__: object) -> None:
            failed.append(step)
            raise LogUnavailableError(step)

        monkeypatch.setattr(deletions, "FINISHED_S", 0.01)
        monkeypatch.setattr("ropeway.gateway.node.topics.FINISHED_S", 0.01)
        if step in ("applied", "emptied"):
            monkeypatch.setattr(deletions, step, fail)
        elif step == "flush":
            monkeypatch.setattr(app.node.topics._deletions, "_keep_forgotten", fail)
        else:
            monkeypatch.setattr(app.node.log, "delete", fail)
        await app.node.topics.delete("orders")
        await until(lambda: failed)
        answer = await client.ask(pulling("orders"))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        monkeypatch.undo()
        for task in app.node.topics._deletions._finishing.values():
            task.cancel()
    async with running(tmp_path) as (app, client):
        assert "orders" not in app.node.routes.topics
        await until(lambda: app.node.routes.deleted["orders"].deletions == [])
        assert (await client.ask(sending("orders"), b"new")).code == 0
        assert await ask_offset(client) in (None, "0")
        found = await client.ask(pulling("orders"))
        assert [one.body for one in found.messages()] == [b"new"]


@looped
async def test_a_topic_is_made_again_only_when_its_deletion_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"old")).code == 0

        def fail(*_: object) -> None:
            raise LogUnavailableError("not now")

        monkeypatch.setattr("ropeway.gateway.node.topics.FINISHED_S", 0.01)
        with monkeypatch.context() as broken:
            broken.setattr(app.node.log, "delete", fail)
            await app.node.topics.delete("orders")
            assert (await client.ask(sending("orders"), b"new")).code != 0
        assert (await client.ask(sending("orders"), b"new")).code == 0
        found = await client.ask(pulling("orders"))
        assert [one.body for one in found.messages()] == [b"new"]


@looped
async def test_names_of_deleted_topics_are_kept_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(deletions, "KEPT", 3)
    async with running(tmp_path) as (app, client):
        routes = app.node.routes
        for name in ("a", "a", "b", "c"):
            assert (await client.ask(sending(name), b"old")).code == 0
            await app.node.topics.delete(name)
        await until(lambda: len(routes.deleted) == 3)
        assert {one.generation for one in routes.deleted.values()} == {1, 2}
        assert (await client.ask(sending("d"), b"old")).code == 0
        assert routes.topics["d"].generation == 0
        await app.node.topics.delete("d")
        await until(lambda: not routes.deleted)
        assert routes.settings[DELETIONS_NAMESPACE, GENERATION] == "2"
        # None that was ever used is used again.
        assert (await client.ask(sending("a"), b"new")).code == 0
        assert routes.topics["a"].generations == {"broker-0": 2}


@looped
async def test_queues_of_a_broker_that_is_away_go_with_those_of_the_others(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        assert (await client.ask(sending("orders"), b"old")).code == 0
        routes = app.node.routes
        delete = DeleteTopicInNamesrv(topic="orders")

        def spread(old: Topic | None) -> Topic:
            return replace(old, route={**old.route, "away": [1000]})

        await routes.change_topic("orders", spread)
        # Nobody who could has deleted it.
        assert (await client.ask(delete)).code == 0
        assert set(routes.topics["orders"].route) == {"broker-0", "away"}
        await app.node.topics.delete("orders")
        assert set(routes.topics["orders"].route) == {"away"}
        assert (await client.ask(delete)).code == 0
        assert "orders" not in routes.topics
        (left,) = routes.deleted["orders"].deletions
        assert (left.pending, left.partitions[-1]) == (["away"], 1000)
