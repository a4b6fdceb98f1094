"""A node balances loads where it is told to, and where that can work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.balance.setup import balancing
from ropeway.gateway.config import ConfigError
from ropeway.gateway.pulsar_config import BalanceConfig
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path

ON = BalanceConfig(by_load="on")


@looped
async def test_a_node_that_is_not_told_to_does_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as (app, _):
        before = asyncio.all_tasks()
        async with balancing(app):
            assert asyncio.all_tasks() == before
        assert app.node.balance.measured == 0


@looped
async def test_it_is_refused_where_no_queue_can_move(tmp_path: Path) -> None:
    async with running(tmp_path, balance=ON) as (app, _):
        with pytest.raises(ConfigError, match=r'balance.by_load is "on".*"off"'):
            async with balancing(app):
                pass
