"""Two clusters of Pulsar: a replicated namespace, a migration; a proxy with TLS."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    Admin,
    ConsumeFrom,
    Message,
    Producer,
    PullConsumer,
    RemotingError,
)
from ropeway.client.message import MessageQueue
from tests.gateway.test_tls import issue
from tests.remoting import looped
from tests.system.process import free_ports
from tests.system.pulsar import Pulsar
from tests.system.pulsar_cluster import PROXY_VERSION
from tests.system.pulsar_servers import Server
from tests.system.ropeway import PATIENT, Ropeway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.system.zookeeper import ZooKeeper

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

EAST, WEST = "standalone", "west"
TENANT = "geo"
QUEUES = 2
COUNT = 40
SEND_S = 60.0
PATIENCE_S = 300.0
PAUSE_S = 0.2
SMALL = ["-Xms64m", "-Xmx320m", "-XX:MaxDirectMemorySize=320m", "-XX:+UseSerialGC"]
LITTLE = {
    "managedLedgerCacheSizeMB": "32",
    "dbStorage_writeCacheMaxSizeMb": "16",
    "dbStorage_readAheadCacheMaxSizeMb": "8",
}


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory, pulsar: Pulsar) -> Iterator[Pulsar]:
    """A second cluster; both know each other, and a tenant is allowed on both."""
    made = Pulsar(
        tmp_path_factory.mktemp("west"),
        settings={
            "clusterName": WEST,
            "clusterMigrationCheckDurationSeconds": "1",
            **LITTLE,
        },
        java=[*SMALL, "-XX:TieredStopAtLevel=1"],
    )
    try:
        made.start()
        for here, there, name in ((pulsar, made, WEST), (made, pulsar, EAST)):
            urls = {
                "serviceUrl": there.admin_url,
                "brokerServiceUrl": there.service_url,
            }
            here.admin("PUT", f"clusters/{name}", urls)
            tenant = {"allowedClusters": [EAST, WEST]}
            here.admin("PUT", f"tenants/{TENANT}", tenant)
        yield made
        # Others use the first one on.
        pulsar.admin("POST", f"tenants/{TENANT}", {"allowedClusters": [EAST]})
        pulsar.admin("DELETE", f"clusters/{WEST}")
    finally:
        made.kill()


def node(
    directory: Path,
    routes: str,
    space: str,
    *,
    service_url: str,
    admin_url: str,
    more: str = "",
) -> Ropeway:
    directory.mkdir()
    tenant, namespace = space.split("/")
    settings = directory / "ropeway.toml"
    settings.write_text(
        f'[pulsar]\nservice_url = "{service_url}"\nadmin_url = "{admin_url}"\n'
        f'tenant = "{tenant}"\nnamespace = "{namespace}"\n{more}{PATIENT}'
    )
    return Ropeway(
        directory,
        options=["--config", str(settings), "--routes", routes, "--node", "one"],
    )


async def until(condition: Callable[[], bool]) -> None:
    """Return when a condition on servers holds, which is asked for in a thread."""
    give_up = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < give_up
        await asyncio.sleep(PAUSE_S)


async def send(where: str, first: int, count: int) -> list[tuple[int, int]]:
    """Send numbers, in turn to each queue; the queue and offset of each."""
    found = []
    async with Producer(where, "senders") as producer:
        for number in range(first, first + count):
            queue = MessageQueue("orders", "broker-0", number % QUEUES)
            message = Message("orders", b"%d" % number)
            sent = await producer.send(message, queue=queue, timeout_s=SEND_S)
            found.append((sent.queue.queue_id, sent.queue_offset))
    return found


async def read(where: str, group: str, count: int) -> list[tuple[int, int, bytes]]:
    """So many messages, and commit them: queue, offset and body of each."""
    found: list[tuple[int, int, bytes]] = []
    async with PullConsumer(
        where, group, consume_from=ConsumeFrom.FIRST_OFFSET
    ) as consumer:
        consumer.subscribe("orders")
        while len(found) < count:
            some = await consumer.poll(SEND_S)
            assert some, f"{len(found)} of {count} messages come"
            found += [(one.queue.queue_id, one.queue_offset, one.body) for one in some]
        assert await consumer.poll(0) == []
        await consumer.commit()
    return sorted(found)


def numbered(first: int, count: int) -> list[tuple[int, int, bytes]]:
    """What `read` finds of what `send` sent, where all is at its place."""
    return sorted(
        (number % QUEUES, number // QUEUES, b"%d" % number)
        for number in range(first, first + count)
    )


def replicated(here: Pulsar, space: str, there: str) -> Callable[[], bool]:
    """Whether all that a cluster has of a namespace is in another one, too."""
    names = [f"orders-partition-{number}" for number in range(QUEUES)]

    def look() -> bool:
        stats = [
            here.admin("GET", f"persistent/{space}/{name}/stats")["replication"][there]
            for name in (*names, "__ropeway_state-broker-0")
        ]
        return all(one["connected"] and not one["replicationBacklog"] for one in stats)

    return look


@looped
async def test_a_replicated_namespace_is_taken_over_in_the_other_cluster_and_back(
    tmp_path: Path, pulsar: Pulsar, west: Pulsar, zookeeper: ZooKeeper
):
    space = f"{TENANT}/{tmp_path.name}"
    for one in (pulsar, west):
        one.admin("PUT", f"namespaces/{space}", {"replication_clusters": [EAST, WEST]})
    first, second = (
        node(
            tmp_path / name,
            f"zookeeper://{zookeeper.address}/{space}-{name}",
            space,
            service_url=server.service_url,
            admin_url=server.admin_url,
        )
        for name, server in ((EAST, pulsar), (WEST, west))
    )
    try:
        await asyncio.to_thread(first.start)
        async with Admin(first.name_server) as admin:
            await admin.create_topic("orders", QUEUES)
        await send(first.name_server, 0, COUNT)
        assert await read(first.name_server, "readers", COUNT) == numbered(0, COUNT)
        await send(first.name_server, COUNT, COUNT)
        await asyncio.to_thread(first.stop)
        await until(replicated(pulsar, space, WEST))

        await asyncio.to_thread(second.start)
        async with Admin(second.name_server) as admin:
            await admin.create_topic("orders", QUEUES)
        # Offsets and what was committed are the same there.
        found = await read(second.name_server, "readers", COUNT)
        assert found == numbered(COUNT, COUNT)
        await send(second.name_server, 2 * COUNT, COUNT)
        await asyncio.to_thread(second.stop)
        await until(replicated(west, space, EAST))

        await asyncio.to_thread(first.start)
        found = await read(first.name_server, "readers", COUNT)
        assert found == numbered(2 * COUNT, COUNT)
        assert (await send(first.name_server, 3 * COUNT, 1))[0] == (0, 3 * COUNT // 2)
        everything = await read(first.name_server, "others", 3 * COUNT + 1)
        assert everything == numbered(0, 3 * COUNT + 1)
    finally:
        first.kill()
        second.kill()
        pulsar.admin("POST", f"namespaces/{space}/replication", [EAST])


@looped
async def test_a_node_works_through_a_proxy_of_pulsar_with_tls(
    tmp_path: Path, pulsar: Pulsar, zookeeper: ZooKeeper
):
    pair = issue(tmp_path, "localhost", address="127.0.0.1")
    service, web, plain_service, plain_web = free_ports(4)
    proxy = Server(
        tmp_path / "proxy",
        "org.apache.pulsar.proxy.server.ProxyServiceStarter",
        "--config",
        {
            "bindAddress": "127.0.0.1",
            "advertisedAddress": "127.0.0.1",
            "clusterName": EAST,
            "brokerServiceURL": pulsar.service_url,
            "brokerWebServiceURL": pulsar.admin_url,
            "servicePort": str(plain_service),
            "webServicePort": str(plain_web),
            "servicePortTls": str(service),
            "webServicePortTls": str(web),
            "tlsCertificateFilePath": str(pair.certificate),
            "tlsKeyFilePath": str(pair.key),
            "numIOThreads": "2",
            "numHttpServerThreads": "8",
            "brokerProxyAllowedTargetPorts": "*",
            "brokerProxyAllowedIPAddresses": "*",
        },
        port=web,
        heap_mib=128,
        version=PROXY_VERSION,
    )
    one = node(
        tmp_path / "node",
        f"zookeeper://{zookeeper.address}/{tmp_path.name}",
        f"public/{tmp_path.name}",
        service_url=f"pulsar+ssl://127.0.0.1:{service}",
        admin_url=f"https://127.0.0.1:{web}",
        more=f'ca_certificate = "{pair.certificate}"\n',
    )
    try:
        await asyncio.to_thread(proxy.launch)
        await asyncio.to_thread(proxy.wait)
        await asyncio.to_thread(one.start)
        async with Admin(one.name_server) as admin:
            await admin.create_topic("orders", QUEUES)
        await send(one.name_server, 0, COUNT)
        assert await read(one.name_server, "readers", COUNT) == numbered(0, COUNT)
    finally:
        one.kill()
        proxy.kill()


@looped
async def test_a_cluster_that_is_migrated_takes_no_more(
    tmp_path: Path, pulsar: Pulsar, west: Pulsar, zookeeper: ZooKeeper
):
    """The last one here: topics of a migrated cluster stay closed for good."""
    space = f"{TENANT}/{tmp_path.name}"
    west.admin("PUT", f"namespaces/{space}", {"replication_clusters": [WEST]})
    one = node(
        tmp_path / "node",
        f"zookeeper://{zookeeper.address}/{tmp_path.name}",
        space,
        service_url=west.service_url,
        admin_url=west.admin_url,
    )
    log = tmp_path / "node" / "ropeway.log"

    def stored() -> int:
        path = f"persistent/{space}/orders/partitioned-internalStats"
        found = west.admin("GET", path)["partitions"].values()
        return sum(one["numberOfEntries"] for one in found)

    try:
        await asyncio.to_thread(one.start)
        async with Admin(one.name_server) as admin:
            await admin.create_topic("orders", QUEUES)
        await send(one.name_server, 0, COUNT)
        there = {
            "serviceUrl": pulsar.admin_url,
            "brokerServiceUrl": pulsar.service_url,
        }
        before = stored()
        west.admin("POST", f"clusters/{WEST}/migrate?migrated=true", there)
        await until(lambda: f'not followed" to={pulsar.service_url}' in log.read_text())
        async with Producer(one.name_server, "senders") as producer:
            with pytest.raises(RemotingError):
                await producer.send(Message("orders", b"late"), timeout_s=SEND_S)
        assert space not in pulsar.admin("GET", f"namespaces/{TENANT}")
        assert stored() == before
    finally:
        one.kill()
