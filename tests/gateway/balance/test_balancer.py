"""The node that is chosen measures loads and asks for moves, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from ropeway.gateway.balance.balancer import Balancer
from ropeway.gateway.pulsar_config import BalanceConfig
from tests.guarded import acl_of, populate
from tests.remoting import looped, running, two_running

if TYPE_CHECKING:
    from pathlib import Path

ON = BalanceConfig(by_load="on", measure_ms=1)


@looped
async def test_the_master_of_the_first_broker_is_chosen_and_no_other(
    tmp_path: Path,
) -> None:
    async with two_running(tmp_path, balance=ON) as ((first, _), (second, _)):
        ours, other = Balancer(first, ON), Balancer(second, ON)
        assert ours.is_chosen()
        assert not other.is_chosen()
        await ours.step()
        await other.step()
        assert (first.node.balance.measured, second.node.balance.measured) == (1, 0)
        # One that is no master is not, whatever its broker is called.
        first.node.leadership.leads = False
        assert not ours.is_chosen()
        first.node.leadership.leads = True


@looped
async def test_it_may_ask_what_it_needs_where_access_control_is_on(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, acl=acl_of(tmp_path)) as (app, _):
        await populate(app)
        with capture_logs() as logs:
            await Balancer(app, ON).step()
        assert not [one for one in logs if one["log_level"] == "warning"]
        balance = app.node.balance
        assert (balance.measured, balance.failed) == (1, 0)


@looped
async def test_what_cannot_be_asked_is_counted_and_tried_again(tmp_path: Path) -> None:
    async with running(tmp_path) as (app, _):
        balancer = Balancer(app, ON)
        address, balancer._address = balancer._address, "127.0.0.1:1"
        brokers = app.node.routes.brokers
        balancer._may_be_uneven = _always  # type: ignore[method-assign]
        with capture_logs() as logs:
            await balancer.step()
        assert app.node.balance.failed == 1
        assert any("loads cannot be balanced now" in one["event"] for one in logs)
        balancer._address = address
        del balancer._may_be_uneven
        await balancer.step()
        assert brokers
        assert (app.node.balance.measured, app.node.balance.failed) == (1, 1)


async def _always(_: object) -> bool:
    return True
