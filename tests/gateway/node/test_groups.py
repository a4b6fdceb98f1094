"""Consumer groups, made on first use where that is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import TopicsConfig
from ropeway.routing import embedded
from ropeway.routing.api import Group
from tests.remoting import looped, running, two_running

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_group_is_made_once_and_keeps_its_set_up(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        groups = app.node.groups
        assert await groups.ensure("g") == Group(name="g")
        await groups.put(Group(name="g", retry_max_times=3))
        assert (await groups.ensure("g")).retry_max_times == 3
        assert "g" in [one.name for one in groups]
        await groups.delete("g")
        assert groups.get("g") is None


@looped
async def test_illegal_names_make_no_group(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        for name in ("", "a b", "x" * 121, "ü"):
            assert await app.node.groups.ensure(name) is None


@looped
async def test_only_known_groups_are_given_where_none_are_made(tmp_path: Path):
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path, topics=topics) as (app, _):
        assert await app.node.groups.ensure("g") is None
        await app.node.groups.put(Group(name="g"))
        assert await app.node.groups.ensure("g")


@looped
async def test_a_group_that_another_node_has_just_made_is_known(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(embedded, "POLL_S", 3600.0)
    topics = TopicsConfig(auto_create_groups=False)
    async with two_running(tmp_path, topics=topics) as ((one, _), (other, _)):
        group = Group(name="g", retry_max_times=3)
        await one.node.groups.put(group)
        assert other.node.groups.get("g") is None
        assert await other.node.groups.ensure("g") == group
