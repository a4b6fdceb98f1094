"""What kazoo does not tell: limits of the servers, and what waits to be sent."""

from __future__ import annotations

import asyncio

import pytest
from kazoo.exceptions import ConnectionLoss

from routing.zookeeper import ZooKeeperSettings
from routing.zookeeper.connection import make_client
from routing.zookeeper.settings import parse_url
from tests.contracts.routes import until
from tests.routing.zookeeper.helpers import opened

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.mark.parametrize(("asked_s", "given_s"), [(0.1, 1.0), (4.0, 4.0), (99.0, 30.0)])
def test_the_servers_limits_of_a_session_are_known(
    chroot: str, asked_s: float, given_s: float
):
    async def main():
        async with opened(chroot, 1, ZooKeeperSettings(session_s=asked_s)) as (routes,):
            assert routes._session.timeout_s == pytest.approx(given_s, abs=0.01)

    asyncio.run(main())


def test_a_request_for_one_connection_is_not_sent_on_the_next(chroot: str):
    async def main():
        place = parse_url(chroot)
        told = []
        client = make_client(
            place, ZooKeeperSettings(), lambda *session: told.append(session)
        )
        # It has not connected, and waits with what it is asked.
        client._state = "CONNECTING"
        late = client.handler.async_result()
        client._queue.append(("a request", late))
        client._queue.append(("a request to close", None))
        client._connection._give_up_waiting()
        assert list(client._queue) == [("a request to close", None)]
        assert isinstance(late.exception, ConnectionLoss)
        client._queue.clear()
        client.start_async()
        await until(lambda: len(told) == 1)
        await asyncio.to_thread(client.stop)
        client.close()

    asyncio.run(main())
