"""Streams of answers end soon after their caller is no longer who it was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from ropeway.gateway.grpc import messaging_service
from ropeway.gateway.grpc.protocol import (
    ClientType,
    Code,
    Duration,
    MessageQueue,
    PullMessageRequest,
    Resource,
)
from tests.gateway.grpc.test_calls import sign
from tests.gateway.grpc.thin import Thin, consumer, create, receives, serving
from tests.guarded import ALICE, acl_of, allow, populate
from tests.promptness import promptly
from tests.remoting import TIMEOUT_S, looped, until

if TYPE_CHECKING:
    from pathlib import Path

WAIT_S = 300
SOON_S = 1.0
"""What is promised."""
RULES = (allow("Topic:orders", "Pub", "Sub"), allow("Group:readers", "Sub"))


async def be_disabled(users) -> None:
    await users.update_user(ALICE, enabled=False)


async def be_super(users) -> None:
    await users.update_user(ALICE, super=True)


async def lose_rules(users) -> None:
    await users.delete_rules(f"User:{ALICE}")


@looped
@pytest.mark.parametrize(
    ("change", "code", "telemetry_ends"),
    [
        (be_disabled, Code.UNAUTHORIZED, True),
        (be_super, Code.UNAUTHORIZED, True),
        (lose_rules, Code.FORBIDDEN, False),
    ],
)
@pytest.mark.parametrize("server", ["ropeway", "grpcio"])
async def test_who_may_no_longer_is_refused_while_it_waits(
    tmp_path: Path, change, code, telemetry_ends, server
):
    acl = acl_of(tmp_path)
    async with serving(tmp_path, acl=acl, grpc_server=server) as (app, _):
        await populate(app, *RULES)
        await create(app, "orders")
        alice = sign(Thin(app.server.listeners[0].advertised, "alice"), ALICE)
        stream, _ = await alice.telemetry(consumer("orders"))
        receiving = asyncio.ensure_future(
            alice.stream("ReceiveMessage", receives("orders", wait_s=50))
        )
        await until(lambda: len(app.node.pop.polling) == 1)
        async with asyncio.timeout(TIMEOUT_S), promptly(SOON_S):
            await change(app.node.guard.administration)
            answers = await receiving
            if telemetry_ends:
                await stream.code()
        # Of a pop and its call either may be judged first.
        assert answers[0].status.code in {code, Code.FORBIDDEN, Code.UNAUTHORIZED}
        assert not any(one.HasField("message") for one in answers)
        if telemetry_ends:
            assert await stream.code() is grpc.StatusCode.INVALID_ARGUMENT
        else:
            assert not stream.done()
        stream.cancel()
        await alice.close()


@looped
async def test_a_stream_that_begins_after_a_change_ends_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with serving(tmp_path, acl=acl_of(tmp_path)) as (app, _):
        await populate(app, *RULES)
        begin = messaging_service.while_known

        async def begin_later(call, answers):
            await be_disabled(app.node.guard.administration)
            await until(lambda: app.node.reauthorization._task is None)
            async for one in begin(call, answers):
                yield one

        monkeypatch.setattr(messaging_service, "while_known", begin_later)
        alice = sign(Thin(app.server.listeners[0].advertised, "alice"), ALICE)
        status, _ = await alice.refused(consumer("orders"))
        assert status is grpc.StatusCode.INVALID_ARGUMENT
        await alice.close()


@looped
async def test_who_is_who_it_was_goes_on(tmp_path: Path):
    async with serving(tmp_path, acl=acl_of(tmp_path)) as (app, _):
        await populate(app, *RULES)
        await create(app, "orders")
        alice = sign(Thin(app.server.listeners[0].advertised, "alice"), ALICE)
        stream, _ = await alice.telemetry(consumer("orders"))
        receiving = asyncio.ensure_future(alice.receive("orders", wait_s=20))
        await until(lambda: len(app.node.pop.polling) == 1)
        await app.node.guard.administration.update_user("nobody", enabled=False)
        await until(lambda: app.node.reauthorization._task is None)
        assert not stream.done()
        await alice.send("orders", b"for alice")
        assert [one.body for one in await receiving] == [b"for alice"]
        stream.cancel()
        await alice.close()


@looped
@pytest.mark.parametrize("change", [be_disabled, lose_rules])
@pytest.mark.parametrize("server", ["ropeway", "grpcio"])
async def test_a_pull_that_waits_is_refused_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change, server
):
    # However slow the machine is, it does not end by itself before.
    monkeypatch.setattr("ropeway.gateway.grpc.pull_message.LONG_POLL_MS", WAIT_S * 1000)
    acl = acl_of(tmp_path)
    async with serving(tmp_path, acl=acl, grpc_server=server) as (app, _):
        await populate(app, *RULES)
        await create(app, "orders")
        alice = sign(Thin(app.server.listeners[0].advertised, "alice"), ALICE)
        kind = ClientType.PULL_CONSUMER
        stream, _ = await alice.telemetry(consumer("orders", kind=kind))
        pull = PullMessageRequest(
            group=Resource(name="readers"),
            message_queue=MessageQueue(topic=Resource(name="orders"), id=0),
            batch_size=1,
            long_polling_timeout=Duration(seconds=WAIT_S),
        )
        pulling = asyncio.ensure_future(
            alice.stream("PullMessage", pull, timeout_s=2 * WAIT_S)
        )
        await until(lambda: len(app.node.pull_hold) == 1 or pulling.done())
        assert not pulling.done()
        async with promptly(SOON_S):
            await change(app.node.guard.administration)
            answers = await pulling
        assert answers[0].status.code in {Code.FORBIDDEN, Code.UNAUTHORIZED}
        assert not any(one.HasField("message") for one in answers)
        assert len(app.node.pull_hold) == 0
        stream.cancel()
        await alice.close()
