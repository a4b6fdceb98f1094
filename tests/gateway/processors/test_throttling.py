"""Quotas of topics and groups slow down what they mean, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.node import accounts
from ropeway.gateway.processors import throttling
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.batches import Stage
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.pop import FROM_EARLIEST, PeekMessage, PopMessage
from ropeway.gateway.wire.commands.quotas import DeleteQuota, SetQuota
from tests.gateway.grpc.thin import Thin, consuming
from tests.guarded import ALICE, NOBODY, ROOT, allow, ask, guarded
from tests.remoting import connect, looped, running, two_running, until
from tests.requests import batch_of, pulling, sending, waiting

if TYPE_CHECKING:
    from ropeway.gateway.app import App
    from tests.remoting import Frame, Remoting

KIB = 1024
FOREVER = 1
"""A limit that is used up for longer than any test takes, once so much was taken."""
BODY = b"x" * 100 * KIB


@pytest.fixture(autouse=True)
def _no_debt_is_forgiven(monkeypatch):
    """While a test runs, however slow the machine is; nor is a read given up."""
    monkeypatch.setattr(accounts, "MAX_DEBT_S", 1e9)
    monkeypatch.setattr(throttling, "USUAL_S", 240.0)


async def limit(client: Remoting, kind: str, name: str, **limits: int) -> None:
    assert (await client.ask(SetQuota(kind, name, **limits))).code == 0


async def free(client: Remoting, kind: str, name: str) -> None:
    assert (await client.ask(DeleteQuota(kind, name))).code == 0


async def filled(client: Remoting, topic: str = "orders", count: int = 1) -> None:
    for _ in range(count):
        assert (await client.ask(sending(topic), BODY)).code == 0


def popping(topic: str = "orders", **changes) -> PopMessage:
    fields = {
        "consumer_group": "readers",
        "topic": topic,
        "queue_id": -1,
        "max_msg_nums": 32,
        "invisible_time": 60_000,
        "poll_time": 0,
        "born_time": 0,
        "init_mode": FROM_EARLIEST,
        "exp_type": None,
        "exp": None,
        **changes,
    }
    return PopMessage(**fields)


def throttled(app: App) -> int:
    return sum(sum(one.values()) for one in app.node.quotas.throttled().values())


@looped
async def test_senders_of_a_topic_are_slowed_down_to_its_rate(tmp_path):
    async with running(tmp_path) as (app, client):
        await limit(client, "topic", "orders", send_requests_per_s=100)
        listener = app.server.listeners[0]
        async with connect(listener) as one, connect(listener) as two:
            began = time.monotonic()
            for _ in range(4):
                sends = [
                    each.send(sending("orders"), b"x")
                    for each in (one, two)
                    for _ in range(25)
                ]
                assert {each.code for each in await asyncio.gather(*sends)} == {0}
            # Who has overdrawn is not read, so that is answered later.
            await asyncio.gather(*(each.ask(GetAllTopicList()) for each in (one, two)))
            # 200 at 100 a second, of which a second's were there.
            assert time.monotonic() - began > 0.9
        assert throttled(app) > 0


@pytest.mark.parametrize("kind", ["plain", "batch", "staged", "version 1"])
@looped
async def test_each_kind_of_send_counts(tmp_path, kind):
    async with running(tmp_path) as (app, client):
        await filled(client)
        await limit(client, "topic", "orders", send_bytes_per_s=FOREVER)
        async with connect(app.server.listeners[0]) as other:
            if kind == "staged":
                staged = Stage(
                    producer_id="p", topic="orders", queue_id=0, bname="broker-0"
                )
                assert (await other.ask(staged, batch_of(BODY))).code == 0
            elif kind == "batch":
                sent = sending("orders", batch=True)
                assert (await other.ask(sent, batch_of(BODY))).code == 0
            else:
                sent = sending("orders", v2=kind == "plain")
                assert (await other.ask(GetAllTopicList())).code == 0
                assert (await other.ask(sent, BODY)).code == 0
            (held,) = (
                one.share
                for one in app.server.listeners[0].connections
                if one.share is not None
            )
            assert held.held_back
            # What it sends now is not read, and what others do is.
            late = other.send(GetAllTopicList())
            assert (await client.ask(sending("others"), b"x")).code == 0
            assert not late.done()
            # A limit that is gone holds nobody back.
            await free(client, "topic", "orders")
            assert (await late).code == 0


@looped
async def test_who_leaves_while_it_is_held_back_leaves_nothing(tmp_path):
    async with running(tmp_path) as (app, client):
        await filled(client)
        await limit(client, "topic", "orders", send_bytes_per_s=FOREVER)
        async with connect(app.server.listeners[0]) as other:
            assert (await other.ask(sending("orders"), BODY)).code == 0
            account = app.node.quotas.sends["orders"]
            assert account._due is not None
            # What a peer does that resets the connection, while nothing is read.
            other.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            other.writer.transport.abort()
        await free(client, "topic", "orders")
        assert account._due is None
        listener = app.server.listeners[0]
        await until(lambda: len(listener.connections) == 1)


async def read(client: Remoting, how: str, group: str = "readers") -> Frame:
    if how == "pull":
        return await client.ask(pulling("orders", group=group))
    if how == "waiting pull":
        return await client.ask(waiting("orders", group=group))
    return await client.ask(popping(consumer_group=group, poll_time=15_000))


@pytest.mark.parametrize("how", ["pull", "waiting pull", "pop"])
@pytest.mark.parametrize("kind", ["topic", "group"])
@looped
async def test_reads_wait_and_nothing_else_on_their_connection_does(
    tmp_path, how, kind
):
    async with running(tmp_path) as (app, client):
        await filled(client, count=2)
        name = {"topic": "orders", "group": "readers"}[kind]
        await limit(client, kind, name, read_bytes_per_s=FOREVER)
        assert (await read(client, how)).messages()
        late = asyncio.ensure_future(read(client, "pull"))
        await until(lambda: throttled(app) == 1)
        assert (await client.ask(sending("orders"), BODY)).code == 0
        others = await read(client, how, "others") if kind == "group" else None
        assert others is None or others.messages()
        assert not late.done()
        await free(client, kind, name)
        assert (await late).messages()


@looped
async def test_a_read_that_waited_for_a_node_that_leads_no_more_gets_nothing(
    tmp_path, monkeypatch
):
    async with running(tmp_path) as (app, client):
        await filled(client, count=2)
        await limit(client, "group", "readers", read_bytes_per_s=FOREVER)
        assert (await read(client, "pull")).messages()
        late = asyncio.ensure_future(read(client, "pull"))
        await until(lambda: throttled(app) == 1)
        monkeypatch.setattr(app.node.leadership, "is_certain", lambda: False)
        await free(client, "group", "readers")
        assert (await late).code == ResponseCode.PULL_NOT_FOUND


@pytest.mark.parametrize("how", ["pull", "pop"])
@looped
async def test_who_may_no_longer_read_is_refused_while_it_waits(tmp_path, how):
    rules = allow("Topic:orders", "Pub", "Sub"), allow("Group:readers", "Sub")
    async with guarded(tmp_path, *rules) as (app, client):
        for _ in range(2):
            assert (await ask(client, ALICE, sending("orders"), BODY)).code == 0
        limits = SetQuota("group", "readers", read_bytes_per_s=FOREVER)
        assert (await ask(client, ROOT, limits)).code == 0
        assert (await ask(client, ALICE, pulling("orders"))).messages()
        asked = pulling("orders") if how == "pull" else popping(poll_time=15_000)
        late = asyncio.ensure_future(ask(client, ALICE, asked))
        await until(lambda: app.node.quotas.waiting == 1)
        await app.node.guard.administration.delete_rules(f"User:{ALICE}")
        assert (await late).code == ResponseCode.NO_PERMISSION
        assert app.node.quotas.waiting == 0


@pytest.mark.parametrize("how", ["pull", "pop"])
@looped
async def test_what_waits_when_the_node_ends_is_answered(tmp_path, how):
    async with running(tmp_path) as (app, client):
        await filled(client, count=2)
        await limit(client, "group", "readers", read_bytes_per_s=FOREVER)
        assert (await read(client, "pull")).messages()
        late = asyncio.ensure_future(read(client, how))
        await until(lambda: app.node.quotas.waiting == 1)
        await app.server.close(60)
        assert (await late).messages()


@looped
async def test_a_read_that_waits_for_long_is_answered_and_asks_again(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(throttling, "USUAL_S", 0.05)
    async with running(tmp_path) as (app, client):
        await filled(client, count=2)
        await limit(client, "group", "readers", read_bytes_per_s=FOREVER)
        assert (await read(client, "pull")).messages()
        empty = await read(client, "pull")
        assert empty.code == ResponseCode.PULL_NOT_FOUND
        assert empty.fields["nextBeginOffset"] == "0"
        short = waiting("orders", suspend_timeout_millis=50)
        assert (await client.ask(short)).code == ResponseCode.PULL_NOT_FOUND
        popped = await client.ask(popping(poll_time=50))
        assert popped.code == ResponseCode.POLLING_TIMEOUT
        peeked = PeekMessage(
            consumer_group="readers", topic="orders", queue_id=0, max_msg_nums=1
        )
        busy = await client.ask(peeked)
        assert busy.code == ResponseCode.SYSTEM_BUSY
        assert "quotas of group readers" in busy.remark
        assert throttled(app) == 4


@looped
async def test_what_a_waiting_pull_or_pop_gets_counts(tmp_path):
    async with running(tmp_path) as (app, client):
        await filled(client)
        await limit(client, "group", "readers", read_bytes_per_s=FOREVER)
        pulled = client.send(waiting("orders", 1))
        await until(lambda: len(app.node.pull_hold))
        await filled(client)
        assert (await pulled).messages()
        (account,) = app.node.quotas._of("readers", "orders", cold=False)
        assert account.overdrawn
        await free(client, "group", "readers")
        await limit(client, "group", "readers", read_bytes_per_s=FOREVER)
        first = await client.ask(popping())
        assert first.messages()
        await free(client, "group", "readers")
        await limit(client, "group", "readers", read_bytes_per_s=FOREVER)
        popped = client.send(popping(poll_time=30_000))
        polling = app.node.pop.polling
        await until(lambda: polling.count(("readers", "orders"), -1))
        await filled(client)
        assert (await popped).messages()
        (account,) = app.node.quotas._of("readers", "orders", cold=False)
        assert account.overdrawn


@pytest.mark.parametrize("how", ["pull", "pop"])
@looped
async def test_cold_reads_are_limited_and_hot_ones_are_not(tmp_path, monkeypatch, how):
    async with running(tmp_path) as (app, client):
        await filled(client, count=3)
        (cold, *_) = app.node.topics.get("orders").partitions
        in_memory = type(cold).read_now
        monkeypatch.setattr(
            type(cold),
            "read_now",
            lambda self, *asked: None if self is cold else in_memory(self, *asked),
        )
        await limit(client, "group", "readers", cold_bytes_per_s=FOREVER)
        one = {"max_msg_nums": 1}
        ask = (
            (lambda at: client.ask(pulling("orders", at, **one)))
            if how == "pull"
            else (lambda _: client.ask(popping(poll_time=15_000, **one)))
        )
        assert (await ask(0)).messages()
        assert app.node.quotas.cold_reads["readers"].size_bytes > len(BODY)
        late = asyncio.ensure_future(ask(1))
        await until(lambda: throttled(app) == 1)
        # In memory, in another topic.
        hot = waiting("hot", 0)
        assert (await client.ask(sending("hot"), b"x")).code == 0
        assert (await client.ask(hot)).messages()
        others = await client.ask(pulling("orders", group="others"))
        assert others.messages()
        assert not late.done()
        await free(client, "group", "readers")
        assert (await late).messages()


@looped
async def test_grpc_senders_and_receivers_are_slowed_down_too(tmp_path):
    async with consuming(tmp_path) as (app, client):
        await client.send("orders", BODY)
        async with connect(app.server.listeners[0]) as remoting:
            await limit(remoting, "topic", "orders", send_bytes_per_s=FOREVER)
            await client.send("orders", BODY)
            late = asyncio.ensure_future(client.send("orders", BODY))
            await until(lambda: throttled(app) == 1)
            other = Thin(app.server.listeners[0].advertised)
            assert (await other.send("orders", b"x")).entries
            assert not late.done()
            await free(remoting, "topic", "orders")
            assert (await late).entries
            await other.close()
            await limit(remoting, "group", "readers", read_bytes_per_s=FOREVER)
            await client.send("orders", BODY)
            assert await client.receive("orders", wait_s=20)
            await client.send("orders", b"more")
            late = asyncio.ensure_future(client.receive("orders", wait_s=20))
            await until(lambda: throttled(app) == 1)
            # What else the client does, on the same connection, does not wait.
            await client.send("orders", b"x")
            assert not late.done()
            await free(remoting, "group", "readers")
            assert await late


@looped
async def test_a_send_that_another_node_sent_on_waits_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(throttling, "FORWARDED_S", 600.0)
    async with two_running(tmp_path) as ((near, client), (far, other)):
        for one in (near, far):
            await until(lambda one=one: one.node.forwarder.others)
        await filled(other)
        await limit(other, "topic", "orders", send_bytes_per_s=FOREVER)
        for_far = msgspec.structs.replace(sending("orders"), bname="broker-1")
        assert (await client.ask(for_far, BODY)).code == 0
        late = client.send(for_far, BODY)
        await until(lambda: throttled(far) == 1)
        # What else is sent on, by the same connection of the nodes, is not held up.
        assert (
            await client.ask(msgspec.structs.replace(for_far, topic="others"), BODY)
        ).code == 0
        assert not late.done()
        await free(other, "topic", "orders")
        assert (await late).code == 0


@looped
async def test_who_may_not_send_uses_nothing_up(tmp_path):
    async with guarded(tmp_path, allow("Topic:orders", "Pub")) as (app, client):
        assert (await ask(client, ROOT, sending("orders"), b"x")).code == 0
        limits = SetQuota("topic", "orders", send_bytes_per_s=FOREVER)
        assert (await ask(client, ROOT, limits)).code == 0
        refused = await ask(client, NOBODY, sending("orders"), BODY)
        assert refused.code == ResponseCode.NO_PERMISSION
        assert not app.node.quotas.sends["orders"].overdrawn
        assert (await ask(client, ALICE, sending("orders"), BODY)).code == 0
        assert app.node.quotas.sends["orders"].overdrawn
