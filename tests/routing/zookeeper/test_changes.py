"""Changes whose answer was lost: made once, and never told wrongly."""

from __future__ import annotations

import asyncio

import pytest
from kazoo.exceptions import (
    NoAuthError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from structlog.testing import capture_logs

from ropeway.routing.api import RouteError, RouteStoreUnavailableError, Topic
from ropeway.routing.zookeeper import ZooKeeperRoutes, ZooKeeperSettings, changes
from ropeway.routing.zookeeper.codec import number_of
from ropeway.routing.zookeeper.session import LostError
from tests.contracts.routes import ORDERS, grow, put_topic, until
from tests.routing.zookeeper.helpers import opened, raw

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def lose_answers(routes: ZooKeeperRoutes, *, is_made: bool, after=None) -> list[int]:
    """Have the connection lost during each second change."""
    commit = routes._session.commit
    asked: list[int] = []

    async def lossy(transaction):
        asked.append(len(asked))
        if len(asked) % 2 == 0:
            return await commit(transaction)
        if is_made:
            await commit(transaction)
        if after:
            await after()
        raise LostError("a fault of this test")

    routes._session.commit = lossy
    return asked


@pytest.mark.parametrize("is_made", [True, False])
def test_a_change_is_made_once_though_the_connection_is_lost_again(
    chroot: str, *, is_made: bool
):
    async def main():
        async with opened(chroot) as (routes,):
            refresh = routes._copy.refresh

            async def lost():
                routes._copy.refresh = refresh
                raise LostError("another fault of this test")

            async def lose():
                routes._copy.refresh = lost

            lose_answers(routes, is_made=is_made, after=lose)
            given = []

            def make(old: Topic | None) -> Topic:
                given.append(old)
                return ORDERS

            await routes.change_topic("orders", make)
            assert given == ([None] if is_made else [None, None])
            assert routes.topics == {"orders": ORDERS}

    asyncio.run(main())


def test_a_change_whose_session_ended_meanwhile_is_made_in_the_next(chroot: str):
    """It was refused where leaders were killed: "SessionExpiredError"."""

    async def main():
        async with opened(chroot) as (routes,):
            ask = routes._session._ask

            async def ended(request, *arguments):
                if request.__name__ != "commit_async":
                    return await ask(request, *arguments)
                routes._session._ask = ask
                # As ZooKeeper 3.9.5 answers the parts of a transaction.
                return [RuntimeInconsistency(), SessionExpiredError()]

            routes._session._ask = ended
            await put_topic(routes, ORDERS)
            assert routes._session._ask == ask
            assert routes.topics == {"orders": ORDERS}

    asyncio.run(main())


def test_what_servers_refuse_to_change_is_said(chroot: str):
    async def main():
        async with opened(chroot) as (routes,):

            async def refuse(_):
                raise NoAuthError

            routes._session.commit = refuse
            with pytest.raises(
                RouteError,
                match=r"ZooKeeper refuses a change of .*/topics/orders: NoAuthError$",
            ):
                await put_topic(routes, ORDERS)

    asyncio.run(main())


@pytest.mark.parametrize("is_made", [True, False])
def test_a_change_whose_answer_was_lost_is_made_once(chroot: str, *, is_made: bool):
    async def main():
        async with opened(chroot, 2) as (first, second):
            asked = lose_answers(first, is_made=is_made)
            await grow(first, 10)
            assert len(asked) == (10 if is_made else 20)
            assert first.topics["count"].read_queue_nums == 10
            await until(lambda: second.topics == first.topics)

    asyncio.run(main())


def test_a_deletion_whose_answer_was_lost_is_not_made_on_what_came_after(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second):
            await put_topic(first, ORDERS)
            lose_answers(first, is_made=True, after=lambda: put_topic(second, ORDERS))
            given = []
            await first.change_topic("orders", given.append)
            assert given == [ORDERS]
            await until(lambda: first.topics == second.topics == {"orders": ORDERS})

    asyncio.run(main())


def test_where_the_list_has_forgotten_nobody_says_what_became_of_it(
    chroot: str, monkeypatch
):
    monkeypatch.setattr(changes, "KEPT_CHANGES", 1)
    monkeypatch.setattr(changes, "TRIM_EVERY", 1)

    async def main():
        async with opened(chroot, 2) as (first, second):

            async def others():
                await grow(second, 5)
                await until(second._changes._trimming.done)

            lose_answers(first, is_made=True, after=others)
            with pytest.raises(RouteStoreUnavailableError, match="not known whether"):
                await put_topic(first, ORDERS)

    asyncio.run(main())


def test_a_change_is_not_denied_where_the_list_has_forgotten_just_that(chroot: str):
    async def main():
        async with opened(chroot, 2) as (first, second), raw(chroot) as client:
            await grow(second, 3)
            await until(lambda: first._copy.sequence == 2)

            async def others():
                await grow(second, 1)
                ours, _ = sorted(client.get_children("/changes"), key=number_of)[-2:]
                client.delete(f"/changes/{ours}")
                for older in client.get_children("/changes"):
                    if number_of(older) < number_of(ours):
                        client.delete(f"/changes/{older}")

            lose_answers(first, is_made=True, after=others)
            with pytest.raises(RouteStoreUnavailableError, match="not known whether"):
                await put_topic(first, ORDERS)

    asyncio.run(main())


def test_the_list_of_changes_stays_short(chroot: str, monkeypatch):
    monkeypatch.setattr(changes, "KEPT_CHANGES", 20)
    monkeypatch.setattr(changes, "TRIM_EVERY", 10)

    async def main():
        async with opened(chroot, 2) as (first, second), raw(chroot) as client:
            await grow(first, 95)
            await until(first._changes._trimming.done)
            assert 20 <= len(client.get_children("/changes")) <= 35
            await until(lambda: second.topics == first.topics)

    asyncio.run(main())


def test_a_server_that_is_silent_makes_a_change_fail_in_time(chroot: str, zookeeper):
    async def main():
        settings = ZooKeeperSettings(session_s=20, wait_s=0.5)
        async with opened(chroot, 1, settings) as (routes,):
            await put_topic(routes, ORDERS)
            with zookeeper.paused(), capture_logs():
                for change in (
                    routes.change_topic("orders", lambda _: None),
                    routes.put_setting("a", "b", "c"),
                    routes.remove_broker("a", "b"),
                ):
                    with pytest.raises(RouteStoreUnavailableError, match=r"0\.5 s"):
                        await change
                assert routes.topics == {"orders": ORDERS}
                assert await routes.find_topic("none") is None

    asyncio.run(main())


def test_a_time_out_of_the_change_itself_is_passed_on(chroot: str):
    def change(_: Topic | None) -> Topic | None:
        raise TimeoutError("mine")

    async def main():
        async with opened(chroot) as (routes,):
            with pytest.raises(TimeoutError, match="mine"):
                await routes.change_topic("t", change)

    asyncio.run(main())
