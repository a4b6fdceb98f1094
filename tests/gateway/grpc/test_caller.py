"""Requests within the process: answered, refused, and forgotten."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from ropeway.acl.api import Channel, Source
from ropeway.gateway.grpc.caller import Caller, Reply
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset
from tests.remoting import looped, running, sending, until, waiting

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
        sent = [caller.get(sending("orders"), b"%d" % number) for number in range(9)]
        await asyncio.gather(*sent)
        asked = GetMaxOffset(topic="orders", queue_id=0)
        reply = await caller.get(asked)
        assert reply.header(Offset).offset == 9


@looped
async def test_a_refusal_has_the_code_of_grpc(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        caller = Caller(app.node, origin(app))
        with pytest.raises(RefusedError) as refused:
            await caller.get(GetRouteInfo(topic="nowhere"))
        assert refused.value.code == Code.TOPIC_NOT_FOUND
        assert "nowhere" in refused.value.message


class Forgetful(Caller):
    """One that keeps what came too late."""

    def too_late(self, reply: Reply) -> None:
        self.late = reply


@looped
async def test_an_answer_that_nobody_waits_for_is_not_lost(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"first")
        caller = Forgetful(app.node, origin(app))
        asked = asyncio.create_task(caller.ask(waiting("orders", 1)))
        await until(lambda: len(app.node.holds) == 1)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await client.ask(sending("orders"), b"second")
        await until(lambda: hasattr(caller, "late"))
        assert caller.late.code == ResponseCode.SUCCESS
