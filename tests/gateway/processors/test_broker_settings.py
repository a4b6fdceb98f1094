"""Settings that change while a broker runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.remoting import looped, running

if TYPE_CHECKING:
    from pathlib import Path

CODE = RequestCode.UPDATE_BROKER_CONFIG


@looped
async def test_the_switches_of_popping_are_taken(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        body = b"#Sun Nov 22\npopConsumerKVServiceEnable=FALSE\n"
        answer = await client.ask(CODE, body, fields={})
        assert (answer.code, answer.remark) == (0, None)
        app.node.pop.switches.look()
        assert not app.node.pop.switches.gives


@looped
@pytest.mark.parametrize(
    ("body", "remark"),
    [
        (b"", "setting none: only"),
        (b"maxMessageSize=1\npopConsumerKVServiceEnable=false", "maxMessageSize"),
        (b"popConsumerKVServiceEnable=perhaps", "allowed: true or false"),
        (b"\xff\xfe=1", "only popConsumerKVServiceInit"),
    ],
)
async def test_what_is_no_switch_is_refused_and_nothing_turned(
    tmp_path: Path, body, remark
):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(CODE, body, fields={})
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert remark in (answer.remark or "")
        app.node.pop.switches.look()
        assert app.node.pop.switches.gives
