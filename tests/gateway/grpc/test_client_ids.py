"""gRPC clients belong to their principals: nobody else ends or replaces them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ropeway.acl.administration import Rules
from ropeway.gateway.grpc.protocol import (
    ClientType,
    Code,
    HeartbeatRequest,
    LiteSubscriptionAction,
    NotifyClientTerminationRequest,
    Resource,
    SyncLiteSubscriptionRequest,
)
from ropeway.routing.api import Group
from tests.gateway.grpc.thin import Thin, consumer, create, producer, serving, sign
from tests.guarded import ALICE, NOBODY, acl_of, allow, populate
from tests.remoting import looped, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.acl.administration import Rule
    from ropeway.gateway.app import App

RULES = (allow("Topic:orders", "Pub", "Sub"), allow("Group:readers", "Sub"))
READERS = NotifyClientTerminationRequest(group=Resource(name="readers"))


@asynccontextmanager
async def both(
    path: Path, *rules: Rule, kind: str = "NORMAL"
) -> AsyncIterator[tuple[App, Thin, Thin]]:
    """Alice with all rights, and a thief with these, that has her client's id."""
    async with serving(path, acl=acl_of(path)) as (app, _):
        await populate(app, *RULES)
        if rules:
            rights = Rules(f"User:{NOBODY}", rules)
            await app.node.guard.administration.add_rules(rights)
        await create(app, "orders", kind)
        address = app.server.listeners[0].advertised
        alice, thief = sign(Thin(address), ALICE), sign(Thin(address), NOBODY)
        try:
            yield app, alice, thief
        finally:
            await alice.close()
            await thief.close()


async def end(client: Thin, request=READERS) -> Code:
    answer = await client.call("NotifyClientTermination", request)
    return answer.status.code


@looped
async def test_nobody_ends_another_users_client(tmp_path: Path):
    async with both(tmp_path, *RULES) as (app, alice, thief):
        stream, _ = await alice.telemetry(consumer("orders"))
        for request in (READERS, NotifyClientTerminationRequest()):
            assert await end(thief, request) == Code.UNRECOGNIZED_CLIENT_TYPE
        assert len(app.node.clients.consumer_group("readers").members) == 1
        beat = await alice.call("Heartbeat", HeartbeatRequest())
        assert beat.status.code == Code.OK
        assert await end(alice) == Code.OK
        await until(lambda: app.node.clients.consumer_group("readers") is None)
        assert len(app.node.clients.owners) == 0
        stream.cancel()


@looped
async def test_ending_a_client_of_a_group_needs_the_group(tmp_path: Path):
    async with both(tmp_path) as (app, alice, thief):
        stream, _ = await alice.telemetry(consumer("orders"))
        assert await end(thief) == Code.FORBIDDEN
        await app.node.guard.administration.delete_rules(f"User:{ALICE}")
        assert await end(alice) == Code.FORBIDDEN
        assert len(app.node.clients.consumer_group("readers").members) == 1
        stream.cancel()


@looped
async def test_nobody_comes_as_another_users_client(tmp_path: Path):
    async with both(tmp_path, *RULES) as (app, alice, thief):
        stream, _ = await alice.telemetry(producer("orders"))
        link = app.node.clients.find_producer("thin")
        for wanted in (producer("orders"), consumer("orders")):
            _, why = await thief.refused(wanted)
            assert why.startswith("FORBIDDEN: client id thin is in use by another")
        assert app.node.clients.find_producer("thin") is link
        # Its own client may have more connections, and come again.
        again = sign(Thin(app.server.listeners[0].advertised), ALICE)
        second, answer = await again.telemetry(producer("orders"))
        assert answer.status.code == Code.OK
        stream.cancel()
        second.cancel()
        await until(lambda: len(app.node.clients.owners) == 0)
        await again.close()
        mine, answer = await thief.telemetry(producer("orders"))
        assert answer.status.code == Code.OK
        mine.cancel()


@looped
async def test_a_client_that_names_nothing_is_not_taken_for_another_users(
    tmp_path: Path,
):
    async with both(tmp_path, *RULES) as (_, alice, thief):
        stream, _ = await alice.telemetry(consumer("orders"))
        other, answer = await thief.telemetry(producer())
        assert answer.status.code == Code.OK
        found = await alice.receive("orders")
        assert found == []
        beat = await alice.call("Heartbeat", HeartbeatRequest())
        assert beat.status.code == Code.OK
        stream.cancel()
        other.cancel()


@looped
async def test_nobody_ends_the_lite_subscriptions_of_another_users_client(
    tmp_path: Path,
):
    async with both(tmp_path, *RULES, kind="LITE") as (app, alice, thief):
        node = app.node
        bound = {"lite.bind.topic": "orders"}
        await node.groups.put(Group(name="readers", attributes=bound))
        wanted = consumer("orders", kind=ClientType.LITE_PUSH_CONSUMER)
        stream, _ = await alice.telemetry(wanted)
        sync = SyncLiteSubscriptionRequest(
            action=LiteSubscriptionAction.PARTIAL_ADD,
            topic=Resource(name="orders"),
            group=Resource(name="readers"),
            lite_topic_set=["a"],
        )
        answer = await alice.call("SyncLiteSubscription", sync)
        assert answer.status.code == Code.OK
        (one,) = node.lite.subscribers
        _, why = await thief.refused(wanted)
        assert why.startswith("FORBIDDEN: ")
        answer = await thief.call("SyncLiteSubscription", sync)
        assert answer.status.code == Code.FORBIDDEN
        assert list(node.lite.subscribers) == [one]
        assert one.lites == {"a"}
        stream.cancel()
        await until(lambda: not list(node.lite.subscribers))
