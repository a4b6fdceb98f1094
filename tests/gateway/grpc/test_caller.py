"""Requests within the process: answered, refused, and forgotten."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.acl.api import Channel, Source
from ropeway.gateway.grpc.caller import Caller
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from tests.remoting import looped, running, until
from tests.requests import sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App


def origin(app: App) -> SimpleNamespace:
    """Where a client would come from."""
    listener = app.server.listeners[0]
    packed = listener.packed_advertised
    return SimpleNamespace(
        address="127.0.0.1:1",
        source=Source("127.0.0.1", Channel.GRPC),
        packed_address=packed,
        listener=listener,
        closed=False,
    )


@looped
async def test_several_requests_get_each_its_own_answer(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        caller = Caller(app.node, origin(app))
        sent = [caller.do(sending("orders"), b"%d" % number) for number in range(9)]
        await asyncio.gather(*sent)
        asked = GetMaxOffset(topic="orders", queue_id=0)
        assert (await caller.get(asked, Offset)).offset == 9


@looped
async def test_a_refusal_has_the_code_of_grpc(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        caller = Caller(app.node, origin(app))
        with pytest.raises(RefusedError) as refused:
            await caller.do(GetRouteInfo(topic="nowhere"))
        assert refused.value.code == Code.TOPIC_NOT_FOUND
        assert "nowhere" in refused.value.message


@looped
async def test_an_answer_that_nobody_waits_for_is_not_lost(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"first")
        caller, late = Caller(app.node, origin(app)), []
        asking = caller.ask(
            waiting("orders", 1), too_late=lambda *one: late.append(one)
        )
        asked = asyncio.create_task(asking)
        await until(lambda: len(app.node.pull_hold) == 1)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await client.ask(sending("orders"), b"second")
        await until(lambda: late)
        assert [(one, answer.code) for one, answer in late] == [
            (caller, ResponseCode.SUCCESS)
        ]
