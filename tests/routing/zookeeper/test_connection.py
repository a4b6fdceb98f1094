"""What kazoo does not tell: limits of the servers, and what waits to be sent."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from kazoo.exceptions import ConnectionLoss

from ropeway.routing.api import RouteStoreUnavailableError
from ropeway.routing.zookeeper import Tls, ZooKeeperSettings, open_routes
from ropeway.routing.zookeeper.connection import make_client
from ropeway.routing.zookeeper.zookeeper_config import parse_url
from tests.clients.test_connections import certificate
from tests.contracts.routes import grow, until
from tests.routing.zookeeper.helpers import opened
from tests.system.process import free_ports
from tests.system.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.jvm, pytest.mark.server]

TLS = """\
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPort={port}
secureClientPortAddress=127.0.0.1
ssl.clientAuth=need
ssl.keyStore.location={pair}
ssl.keyStore.type=PEM
ssl.trustStore.location={certificate}
ssl.trustStore.type=PEM
"""


@pytest.mark.parametrize(("asked_s", "given_s"), [(0.1, 1.0), (4.0, 4.0), (99.0, 30.0)])
def test_the_servers_limits_of_a_session_are_known(
    chroot: str, asked_s: float, given_s: float
):
    async def main():
        async with opened(chroot, 1, ZooKeeperSettings(session_s=asked_s)) as (routes,):
            assert routes._session.timeout_s == pytest.approx(given_s, abs=0.01)

    asyncio.run(main())


def test_a_lost_server_is_tried_each_second_for_ever(chroot: str):
    async def main():
        async with opened(chroot) as (routes,):
            retry = routes._session._client._connection.retry_sleeper
            assert (retry.max_tries, retry.max_delay) == (-1, 1.0)

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


# kazoo leaves a socket whose handshake failed to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore:.*<ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
)
def test_with_tls_both_sides_show_who_they_are(tmp_path: Path):
    signed, key = certificate(tmp_path)
    pair = tmp_path / "pair.pem"
    pair.write_bytes(key.read_bytes() + signed.read_bytes())
    (port,) = free_ports(1)
    lines = TLS.format(port=port, pair=pair, certificate=signed)
    server = ZooKeeper(tmp_path / "zookeeper", settings=lines)
    server.start()
    url = f"zookeeper://127.0.0.1:{port}/r"

    async def main():
        good = ZooKeeperSettings(tls=Tls(ca=signed, certificate=signed, key=key))
        async with opened(url, 2, good) as (first, second):
            start_s = time.monotonic()
            await asyncio.gather(grow(first, 30), grow(second, 30))
            # An answer that came together with another did not wait for a third.
            assert time.monotonic() - start_s < 30
            for one in (first, second):
                await until(lambda: one.topics["count"].read_queue_nums == 60)  # noqa: B023
        for bad in (Tls(ca=signed), Tls(certificate=signed, key=key), None):
            with pytest.raises(RouteStoreUnavailableError):
                await open_routes(url, ZooKeeperSettings(wait_s=2, tls=bad))

    try:
        asyncio.run(main())
    finally:
        server.stop()
