"""What a node is built of: every part has its turn, and settings are looked at."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.app import App
from ropeway.gateway.composition import property_suffix
from ropeway.gateway.config import ConfigError
from ropeway.gateway.wire import properties
from tests.remoting import config, looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_each_part_that_a_master_takes_over_is_a_duty(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        node = app.node
        parts = [getattr(node, one.name) for one in fields(node)]
        owed = [one for one in parts if hasattr(one, "take_over")]
        assert len(owed) > 5
        assert [one for one in owed if one not in node.leadership._duties] == []


def test_messages_are_marked_with_where_they_were_stored(tmp_path: Path):
    suffix = property_suffix(config(tmp_path, region="east", cluster="c"))
    assert properties.parse(suffix) == {
        properties.MSG_REGION: "east",
        properties.TRACE_ON: "true",
        properties.CLUSTER: "c",
    }


@looped
async def test_settings_that_cannot_be_used_are_named(tmp_path: Path):
    with pytest.raises(ConfigError, match="delay_levels: delay level 'soon'"):
        async with App(config(tmp_path, delay_levels="1s soon")):
            pass
    async with running(tmp_path) as (_, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
