"""What a mirror does with messages of producers, and when that may change."""

from __future__ import annotations

import msgspec
import pytest

from tests.gateway.node.test_source_routes import create, creating, following, source_of
from tests.remoting import looped, running


@pytest.mark.parametrize(
    ("writes", "remark"),
    [
        ("held", "are not sent on to the source yet"),
        ("stored", "are not sent on to the source yet"),
        ("nowhere", "allowed: at_source, passed_on, held, stored"),
    ],
)
@looped
async def test_steps_that_are_not_next_are_refused(tmp_path, writes, remark):
    async with (
        source_of(tmp_path) as (source, there),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        await create(there, "orders")
        await create(here, "orders", perm=4, begins="0")
        wanted = msgspec.structs.replace(creating("orders", perm=4), writes=writes)
        assert remark in (await here.ask(wanted)).remark
        await create(here, "ours")
        wanted = msgspec.structs.replace(wanted, topic="ours")
        assert "topic ours is no mirror" in (await here.ask(wanted)).remark
