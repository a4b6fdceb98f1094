"""A change is written once, by the node that makes it, with who asked for it."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import msgspec
import pytest
from structlog.testing import capture_logs

from ropeway.client import Admin, MessageQueue, admin_messages
from ropeway.gateway.config import HttpConfig
from ropeway.gateway.grpc.protocol import (
    Code,
    MessageType,
    RecallMessageRequest,
    Resource,
    Timestamp,
)
from ropeway.gateway.wire.commands.send import RecallMessage, SendReply
from ropeway.routing.api import RouteStoreUnavailableError
from tests.audited import audited, changes, lines
from tests.gateway.grpc.thin import Thin, create, sign
from tests.gateway.grpc.thin import serving as serving_grpc
from tests.gateway.http.signed import guarded_site, sign_in
from tests.gateway.http.site import bury, send
from tests.gateway.http.site import serving as serving_page
from tests.gateway.processors.test_changes import topic
from tests.guarded import ALICE, PASSWORD, ROOT, acl_of, allow, ask, populate
from tests.remoting import Remoting, connect, looped, running, two_running, until
from tests.requests import pulling, sending

ELSEWHERE = "127.0.0.2"
"""An address of ours that no node has."""
PAGE = HttpConfig(port=0, writable=True)
HEADERS = {"X-Ropeway": "page"}
LATER = {"TIMER_DELAY_SEC": "3600"}


@looped
async def test_what_was_sent_on_is_written_once_with_its_client(tmp_path):
    settings = {"acl": acl_of(tmp_path), "audit": audited(tmp_path)}
    async with two_running(tmp_path, **settings) as ((near, _), (far, other)):
        await populate(near, allow("Topic:orders"))
        await until(far.node.guard.administration.rules)
        for one in (near, far):
            await until(lambda one=one: one.node.forwarder.others)
        sent = await ask(other, ROOT, sending("orders", pairs=LATER), b"later")
        name = far.node.config.broker
        listener = near.server.listeners[0]
        client = Remoting(
            *await asyncio.open_connection(
                listener.host, listener.port, local_addr=(ELSEWHERE, 0)
            )
        )
        recall = RecallMessage(
            topic="orders", recall_handle=sent.read(SendReply).recall_handle, bname=name
        )
        assert (await ask(client, ALICE, recall)).code == 0
        (line,) = changes(tmp_path, "RECALL")
        assert line["principal"] == "users:alice"
        assert (line["address"], line["channel"]) == (ELSEWHERE, "forwarded")
        assert line["resource"].startswith("Topic:orders Timer:")
        await client.close()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RouteStoreUnavailableError("away"), "SERVICE_NOT_AVAILABLE: away"),
        (RuntimeError("our secrets"), "SYSTEM_ERROR"),
    ],
)
@looped
async def test_a_change_that_fails_is_written_and_says_why(
    tmp_path, monkeypatch, error, reason
):
    async with running(tmp_path, audit=audited(tmp_path)) as (app, client):

        async def change_topic(*_):
            raise error

        assert (await client.ask(topic("orders"))).code == 0
        with monkeypatch.context() as broken:
            broken.setattr(app.node.routes, "change_topic", change_topic)
            assert (await client.ask(topic("orders", 3))).code != 0
        line = lines(tmp_path)[-1]
        assert (line["event"], line["reason"]) == ("change failed", reason)
        assert line["before"] == line["after"]


@looped
async def test_what_is_made_by_its_first_use_is_written_once(tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (_, client):
        sends = [client.send(sending("orders"), b"x") for _ in range(20)]
        assert {one.code for one in await asyncio.gather(*sends)} == {0}
        pulls = [client.send(pulling("orders")) for _ in range(20)]
        assert {one.code for one in await asyncio.gather(*pulls)} == {0}
        assert [
            (one["request"], one["resource"], "before" in one, "after" in one)
            for one in lines(tmp_path)
        ] == [
            ("310 SEND_MESSAGE_V2", "Topic:orders", False, True),
            ("11 PULL_MESSAGE", "Group:readers", False, True),
        ]


@looped
async def test_without_a_file_the_log_has_each_change(tmp_path):
    with capture_logs() as logs:
        async with running(tmp_path) as (_, client):
            assert (await client.ask(topic("orders"))).code == 0
    (line,) = (one for one in logs if one["event"] == "changed")
    assert (line["resource"], line["address"]) == ("Topic:orders", "127.0.0.1")


@looped
async def test_changes_by_grpc_are_written_with_their_caller(tmp_path):
    settings = {"acl": acl_of(tmp_path), "audit": audited(tmp_path)}
    async with serving_grpc(tmp_path, **settings) as (app, _):
        await populate(app, allow("Topic:orders", "Pub"))
        await create(app, "orders", "DELAY")
        client = sign(Thin(app.server.listeners[0].advertised), ALICE)
        due = Timestamp(seconds=int(time.time()) + 600)
        later = {"message_type": MessageType.DELAY, "delivery_timestamp": due}
        (entry,) = (await client.send("orders", **later)).entries
        recall = RecallMessageRequest(
            topic=Resource(name="orders"), recall_handle=entry.recall_handle
        )
        answer = await client.call("RecallMessage", recall)
        assert answer.status.code == Code.OK
        await client.close()
        (line,) = changes(tmp_path, "RECALL")
        assert (line["principal"], line["channel"]) == ("users:alice", "grpc")
        assert line["address"] == "127.0.0.1"


@looped
async def test_the_page_changes_in_the_name_of_who_looks_at_it(tmp_path):
    async with serving_page(tmp_path, PAGE, audit=audited(tmp_path)) as site:
        await send(site.client, "orders", 1)
        await bury(site.client, "orders", "readers", 1)
        (letter,) = (await site.get("dead-letters/readers"))["messages"]
        body = msgspec.json.encode({"messages": [letter["id"]]})
        known = len(lines(tmp_path))
        elsewhere = aiohttp.TCPConnector(local_addr=(ELSEWHERE, 0))
        async with (
            aiohttp.ClientSession(site.address, connector=elsewhere) as session,
            session.post(
                "/api/dead-letters/readers/replay", data=body, headers=HEADERS
            ) as answer,
        ):
            assert (await answer.json())["results"] == [
                {"id": letter["id"], "error": None}
            ]
        (line,) = lines(tmp_path)[known:]
        assert line["address"] == ELSEWHERE
        assert line["resource"].startswith("DeadLetters:%DLQ%readers Message:")
        assert "principal" not in line


@looped
async def test_signing_in_failing_to_and_signing_out_are_written(tmp_path):
    settings = {"http": PAGE, "audit": audited(tmp_path)}
    async with guarded_site(tmp_path, **settings) as site:
        known = len(lines(tmp_path))
        assert (await sign_in(site, ALICE, "wrong")).status == 401
        assert (await sign_in(site, ALICE)).status == 200
        answer = await site.ask("/api/session", "DELETE", headers=HEADERS)
        assert answer.status == 200
        failed, entered, left = lines(tmp_path)[known:]
        assert [one["event"] for one in (failed, entered, left)] == [
            "refused",
            "signed in",
            "signed out",
        ]
        assert failed["claimed"] == ALICE
        assert entered["principal"] == left["principal"] == "users:alice"
        for one in (failed, entered, left):
            assert one["request"] == "SIGN_IN"
            assert (one["address"], one["channel"]) == ("127.0.0.1", "http")
        while (await sign_in(site, ALICE, "wrong")).status == 401:
            pass
        assert "too many wrong attempts" in lines(tmp_path)[-1]["reason"]
        assert PASSWORD not in (tmp_path / "audit.jsonl").read_text()


@looped
async def test_whose_rights_go_is_signed_out_and_that_is_written(tmp_path):
    settings = {"http": PAGE, "audit": audited(tmp_path)}
    async with guarded_site(tmp_path, **settings) as site:
        assert (await sign_in(site, ALICE)).status == 200
        users = site.app.node.guard.administration
        await users.update_user(ALICE, enabled=False)
        await until(lambda: lines(tmp_path)[-1]["event"] == "signed out")
        out = lines(tmp_path)[-1]
        assert (out["principal"], out["reason"]) == (
            "users:alice",
            "rules have changed",
        )


@looped
async def test_a_message_that_is_sent_again_by_our_tool_is_written(tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (app, client):
        assert (await client.ask(sending("orders"), b"x")).code == 0
        async with Admin(app.server.listeners[0].advertised) as admin:
            queue = MessageQueue("orders", "broker-0", 0)
            (found,) = [one async for one in admin_messages.read(admin, queue, 0)]
            await admin_messages.note_resend(admin, found, "others")
        (line,) = changes(tmp_path, "RESEND")
        assert line["resource"] == f"Topic:others Message:{found.offset_msg_id}"


@looped
async def test_nodes_that_share_a_file_break_no_line(tmp_path):
    async with two_running(tmp_path, audit=audited(tmp_path)) as nodes:
        made = [
            client.send(topic(f"t{at}-{number}"))
            for number in range(50)
            for at, (_, client) in enumerate(nodes)
        ]
        assert {one.code for one in await asyncio.gather(*made)} == {0}
        names = {one["resource"] for one in lines(tmp_path)}
        assert len(names) == 100


@looped
async def test_a_connection_that_went_meanwhile_is_still_named(tmp_path):
    async with running(tmp_path, audit=audited(tmp_path)) as (app, _):
        async with connect(app.server.listeners[0]) as gone:
            gone.send(topic("orders"), one_way=True)
            await gone.writer.drain()
        await until(lambda: changes(tmp_path, "CREATE_TOPIC"))
        assert lines(tmp_path)[-1]["address"] == "127.0.0.1"
