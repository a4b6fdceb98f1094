"""A session: how long it is ours, and that it ends whatever the servers do."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.routing.api import RouteError, RouteStoreUnavailableError
from ropeway.routing.zookeeper import ZooKeeperSettings, open_routes, session
from tests.contracts.routes import ORDERS, TIMEOUT_S, node, put_topic, until
from tests.routing.zookeeper.helpers import QUICK, expire, opened, raw
from tests.system.process import free_ports

if TYPE_CHECKING:
    from tests.system.zookeeper import ZooKeeper

pytestmark = [pytest.mark.jvm, pytest.mark.server]


def test_where_no_server_answers_a_start_says_so_in_time():
    async def main():
        url = f"zookeeper://127.0.0.1:{free_ports(1)[0]}/r"
        with pytest.raises(RouteStoreUnavailableError, match=r"127\.0\.0\.1.*0\.3 s"):
            await open_routes(url, ZooKeeperSettings(wait_s=0.3))

    asyncio.run(main())


def test_a_session_is_held_for_longer_and_longer_while_servers_answer(chroot: str):
    async def main():
        async with opened(chroot) as (routes,):
            start_s = time.monotonic()
            known = (routes._session.id, routes.held_until_s)
            assert start_s < known[1] <= start_s + QUICK.session_s

            def is_held_on() -> bool:
                nonlocal known
                if routes._session.id != known[0]:
                    # The machine was too busy to keep the session; ask of the next.
                    known = (routes._session.id, routes.held_until_s)
                until_s = routes.held_until_s
                return until_s > known[1] + 2 and until_s > time.monotonic()

            await until(is_held_on)
            assert routes.held_until_s <= time.monotonic() + QUICK.session_s

    asyncio.run(main())


def test_a_session_is_not_held_for_longer_while_no_server_answers(
    chroot: str, zookeeper: ZooKeeper
):
    async def main():
        async with opened(chroot) as (routes,):
            with zookeeper.paused():
                await until(lambda: routes.held_until_s < time.monotonic())
                last = routes.held_until_s
                await asyncio.sleep(QUICK.session_s / 2)
                assert routes.held_until_s == last
            await until(lambda: routes.held_until_s > time.monotonic())

    asyncio.run(main())


def test_a_session_that_the_servers_ended_was_never_held(chroot: str):
    async def main():
        async with opened(chroot) as (routes,):
            before = routes._session.id
            held = []
            end = routes._session._told_disconnected

            def ended(is_over: bool) -> None:
                end(is_over)
                if is_over:
                    held.append(routes.held_until_s)

            routes._session._told_disconnected = ended
            await expire(routes)
            await until(lambda: routes._session.id != before)
            assert held == [-math.inf]
            await until(lambda: routes.held_until_s > time.monotonic())

    asyncio.run(main())


def test_who_was_closed_is_gone_for_all_at_once(chroot: str, monkeypatch):
    monkeypatch.setattr(session, "CLOSE_S", TIMEOUT_S)

    async def main():
        async with opened(chroot) as (routes,), raw(chroot) as client:
            await routes.put_broker(node("a"))
            await routes.close()
            assert routes._session._client.client_state == "CLOSED"
            assert client.get_children("/brokers/broker-0") == []

    asyncio.run(main())


def test_closing_does_not_wait_for_a_server_that_says_nothing(
    chroot: str, zookeeper: ZooKeeper
):
    async def main():
        routes = await open_routes(chroot, QUICK)
        with zookeeper.paused():
            start_s = time.monotonic()
            change = asyncio.create_task(put_topic(routes, ORDERS))
            await asyncio.sleep(0.01)
            await routes.close()
            assert time.monotonic() - start_s < 10
            with pytest.raises(RouteStoreUnavailableError):
                await change

    asyncio.run(main())


def test_what_was_stored_with_a_user_is_for_that_user_alone(chroot: str):
    async def main():
        mine = ZooKeeperSettings(user="me", password="secret")
        async with opened(chroot, 2, mine) as (first, second):
            await put_topic(first, ORDERS)
            await until(lambda: second.topics == {"orders": ORDERS})
        for other in (ZooKeeperSettings(), ZooKeeperSettings(user="me", password="x")):
            with pytest.raises(RouteError, match="NoAuthError"):
                await open_routes(chroot, other)

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_answer_that_nobody_understands_ends_the_session_and_not_the_store(
    chroot: str,
):
    async def main():
        async with opened(chroot, 2) as (first, second):
            connection = first._session._client._connection
            read = connection._read_socket

            def confused(read_timeout):
                connection._read_socket = read
                raise RuntimeError("xids do not match")

            connection._read_socket = confused
            await put_topic(second, ORDERS)
            await put_topic(first, ORDERS)
            await first.put_setting("a", "b", "c")
            await until(lambda: second.settings == {("a", "b"): "c"})
            assert first.topics == {"orders": ORDERS}

    asyncio.run(main())


def test_a_session_whose_connection_was_lost_is_held_until_its_time_is_up(chroot: str):
    async def main():
        async with opened(chroot) as (routes,):
            held = []
            lost = routes._session._told_disconnected

            def heard(is_over: bool) -> None:
                lost(is_over)
                held.append((is_over, routes._session.held_until_s))

            routes._session._told_disconnected = heard
            before = routes._session.id, routes._session.held_until_s
            routes._session._client._connection._socket.shutdown(2)
            await until(lambda: held)
            await until(lambda: routes._session.is_connected)
            ((is_over, until_s),) = held
            assert not is_over
            assert routes._session.id == before[0]
            assert before[1] <= until_s < math.inf

    asyncio.run(main())
