"""Who calls must say so, and say something that can be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc

from ropeway.gateway.config import QuotaConfig
from ropeway.gateway.grpc.protocol import (
    Code,
    HeartbeatRequest,
    QueryRouteRequest,
)
from tests.gateway.grpc.thin import Thin, consumer, create, receives, serving, sign
from tests.guarded import ALICE, NOBODY, acl_of, allow, populate
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_call_without_a_client_id_is_refused(tmp_path: Path):
    async with serving(tmp_path) as (app, _):
        address = app.server.listeners[0].advertised
        wrong = {
            None: Code.CLIENT_ID_REQUIRED,
            "  ": Code.CLIENT_ID_REQUIRED,
            "x" * 300: Code.BAD_REQUEST,
        }
        for client_id, code in wrong.items():
            client = Thin(address, client_id)
            answer = await client.call("QueryRoute", QueryRouteRequest())
            assert answer.status.code == code
            await client.close()


@looped
async def test_a_call_without_settings_is_refused(tmp_path: Path):
    async with serving(tmp_path) as (_, client):
        for name in ("Heartbeat", "NotifyClientTermination"):
            answer = await client.call(name, HeartbeatRequest())
            assert answer.status.code == Code.UNRECOGNIZED_CLIENT_TYPE
        (answer,) = await client.stream("ReceiveMessage", QueryRouteRequest())
        assert answer.status.code == Code.UNRECOGNIZED_CLIENT_TYPE


@looped
async def test_where_access_is_controlled_a_call_is_its_users(tmp_path: Path):
    rules = (allow("Topic:orders", "Pub", "Sub"), allow("Group:readers", "Sub"))
    async with serving(tmp_path, acl=acl_of(tmp_path)) as (app, stranger):
        await populate(app, *rules)
        for topic in ("orders", "prices"):
            await create(app, topic)
        address = app.server.listeners[0].advertised
        alice = sign(Thin(address, "alice"), ALICE)
        nobody = sign(Thin(address, "nobody"), NOBODY)
        liar = sign(Thin(address, "liar"), ALICE, "guessed")
        for client, topic, code in (
            (stranger, "orders", Code.UNAUTHORIZED),
            (liar, "orders", Code.UNAUTHORIZED),
            (nobody, "orders", Code.FORBIDDEN),
            (alice, "prices", Code.FORBIDDEN),
            (alice, "orders", Code.OK),
        ):
            sent = await client.send(topic)
            assert (topic, sent.status.code) == (topic, code)
        stream, _ = await alice.telemetry(consumer("orders"))
        (found,) = await alice.receive("orders")
        assert found.body == b"hello"
        (refused,) = await alice.stream("ReceiveMessage", receives("orders", "others"))
        assert refused.status.code == Code.FORBIDDEN
        # Clients who are told before they have said a word do not hear why.
        code, why = await stranger.refused(consumer("orders"), after_s=0.3)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert why.startswith("UNAUTHORIZED: ")
        stream.cancel()
        for client in (alice, nobody, liar):
            await client.close()


@looped
async def test_calls_of_a_principal_count_for_its_quota(tmp_path: Path):
    quotas = (QuotaConfig(of=f"users:{ALICE}", requests_per_s=20),)
    acl = acl_of(tmp_path)
    async with serving(tmp_path, acl=acl, quotas=quotas) as (app, _):
        await populate(app, allow("Topic:orders", "Pub"))
        await create(app, "orders")
        alice = sign(Thin(app.server.listeners[0].advertised, "alice"), ALICE)
        answers = await asyncio.gather(*(alice.send("orders") for _ in range(60)))
        assert {one.status.code for one in answers} == {Code.OK}
        (pipe,) = app.server.http2.open.values()
        # Sixty are three seconds' worth, and one second's was there.
        # It is over by now where the machine stood still meanwhile.
        assert pipe.share._account.throttled
        assert (await alice.send("orders")).status.code == Code.OK
        await alice.close()


@looped
async def test_a_principal_has_so_many_connections_and_no_more(tmp_path: Path):
    quotas = (QuotaConfig(of=f"users:{ALICE}", connections=1),)
    acl = acl_of(tmp_path)
    async with serving(tmp_path, acl=acl, quotas=quotas) as (app, _):
        await populate(app, allow("Topic:orders", "Pub"))
        await create(app, "orders")
        address = app.server.listeners[0].advertised
        one, other = (sign(Thin(address, name), ALICE) for name in "ab")
        assert (await one.send("orders")).status.code == Code.OK
        refused = (await other.send("orders")).status
        assert refused.code == Code.TOO_MANY_REQUESTS
        assert "close one of them" in refused.message
        await one.close()
        async with asyncio.timeout(60):
            while (await other.send("orders")).status.code != Code.OK:
                pass
        await other.close()
