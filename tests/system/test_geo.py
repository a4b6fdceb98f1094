"""Two clusters of Pulsar: a replicated namespace, fail-over, a migration; a proxy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.client import Admin, Message, Producer, RemotingError
from ropeway.client.message import MessageQueue
from tests.gateway.test_tls import issue
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT, PATIENT_PRODUCER
from tests.system.geo import (
    COUNT,
    EAST,
    QUEUES,
    SEND_S,
    TENANT,
    WEST,
    Geo,
    accepted,
    node,
    numbered,
    read,
    replicated,
    send,
    until,
)
from tests.system.process import free_ports
from tests.system.pulsar import Pulsar
from tests.system.pulsar_cluster import PROXY_VERSION
from tests.system.pulsar_servers import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.zookeeper import ZooKeeper

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

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
        async with Admin(first.name_server, config=PATIENT) as admin:
            await admin.create_topic("orders", QUEUES)
        await send(first.name_server, 0, COUNT)
        assert await read(first.name_server, "readers", COUNT) == numbered(0, COUNT)
        await send(first.name_server, COUNT, COUNT)
        await asyncio.to_thread(first.stop)
        await until(replicated(pulsar, space, WEST))

        await asyncio.to_thread(second.start)
        async with Admin(second.name_server, config=PATIENT) as admin:
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


@pytest.fixture
def geo(
    tmp_path: Path, pulsar: Pulsar, west: Pulsar, zookeeper: ZooKeeper
) -> Iterator[Geo]:
    name = tmp_path.name
    made = Geo(tmp_path, name, f"zookeeper://{zookeeper.address}/geo-{name}")
    for one in (pulsar, west):
        clusters = {"replication_clusters": [EAST, WEST]}
        one.admin("PUT", f"namespaces/{made.space}", clusters)
    try:
        yield made
    finally:
        made.kill()
        pulsar.admin("POST", f"namespaces/{made.space}/replication", [EAST])


@looped
async def test_the_other_cluster_is_used_when_it_is_told_and_not_before(
    geo: Geo, pulsar: Pulsar, west: Pulsar
):
    first = geo.node(pulsar)
    await geo.start(first)
    await send(first.name_server, 0, COUNT)
    assert await read(first.name_server, "readers", COUNT) == numbered(0, COUNT)
    await send(first.name_server, COUNT, COUNT)
    # While a node is there, and without a word, the other cluster is refused.
    said = await asyncio.to_thread(geo.refusal, west)
    assert "this Pulsar is another cluster (without an id, in the schema of" in said
    assert said.endswith("--adopt replica")
    said = await asyncio.to_thread(geo.refusal, west, adopt="replica")
    stop = "and nodes run: node-0 of broker-0; stop all before this one is started"
    assert stop in said
    await send(first.name_server, 2 * COUNT, COUNT)
    await asyncio.to_thread(first.stop)
    await until(replicated(pulsar, geo.space, WEST))

    second = geo.node(west, adopt="replica")
    await asyncio.to_thread(second.start)
    found = await read(second.name_server, "readers", 2 * COUNT)
    assert found == numbered(COUNT, 2 * COUNT)
    await send(second.name_server, 3 * COUNT, COUNT)
    await asyncio.to_thread(second.stop)
    # Who still names the first one is refused now, and the second needs no word.
    assert "another cluster (id " in await asyncio.to_thread(geo.refusal, pulsar)
    again = geo.node(west)
    await asyncio.to_thread(again.start)
    await send(again.name_server, 4 * COUNT, COUNT)
    await asyncio.to_thread(again.stop)
    await until(replicated(west, geo.space, EAST))

    back = geo.node(pulsar, adopt="replica")
    await asyncio.to_thread(back.start)
    found = await read(back.name_server, "readers", 2 * COUNT)
    assert found == numbered(3 * COUNT, 2 * COUNT)
    everything = await read(back.name_server, "others", 5 * COUNT)
    assert everything == numbered(0, 5 * COUNT)


@looped
async def test_addresses_of_another_cluster_are_passed_over_while_ours_is_away(
    geo: Geo, pulsar: Pulsar, west: Pulsar
):
    first = geo.node(west, pulsar)
    await geo.start(first)
    await send(first.name_server, 0, COUNT)
    assert await read(first.name_server, "readers", COUNT) == numbered(0, COUNT)
    await until(replicated(west, geo.space, EAST))
    path = f"persistent/{geo.space}/orders-partition-0/stats"
    before = pulsar.admin("GET", path)["msgInCounter"]
    await asyncio.to_thread(west.kill)
    try:
        async with Producer(
            first.name_server, "senders", config=PATIENT_PRODUCER
        ) as producer:
            queue = MessageQueue("orders", "broker-0", 0)
            with pytest.raises(RemotingError):
                await producer.send(
                    Message("orders", b"late"), queue=queue, timeout_s=3.0
                )
        said = f"127.0.0.1:{pulsar.broker_port} is of another Pulsar cluster (without"
        # It may look at the next address after the send's time is over.
        await until(lambda: said in geo.log(0))
        assert pulsar.admin("GET", path)["msgInCounter"] == before
    finally:
        await asyncio.to_thread(west.start)
    end = await accepted(first.name_server, Message("orders", b"back"))
    # What was refused may have been stored, and nothing is in another place.
    begin = COUNT // QUEUES
    found = await read(first.name_server, "readers", end + 1 - begin)
    assert [one[:2] for one in found] == [(0, n) for n in range(begin, end + 1)]
    assert {one[2] for one in found} <= {b"late", b"back"}


@looped
async def test_what_was_not_replicated_is_lost_and_hides_nothing_that_comes(
    geo: Geo, pulsar: Pulsar, west: Pulsar
):
    first = geo.node(west)
    await geo.start(first)
    await send(first.name_server, 0, COUNT)
    assert await read(first.name_server, "readers", COUNT) == numbered(0, COUNT)
    # At its end all is in Pulsar that it has to keep, commits, too.
    await asyncio.to_thread(first.stop)
    await until(replicated(west, geo.space, EAST))
    await asyncio.to_thread(first.start)
    west.admin("POST", f"namespaces/{geo.space}/replication", [WEST])
    await until(
        lambda: (
            not west.admin("GET", f"persistent/{geo.space}/orders-partition-0/stats")[
                "replication"
            ]
        )
    )
    await send(first.name_server, COUNT, COUNT)
    assert await read(first.name_server, "readers", COUNT) == numbered(COUNT, COUNT)
    await asyncio.to_thread(first.kill)

    second = geo.node(pulsar, adopt="replica")

    def starts() -> bool:
        try:
            second.start()
        except RuntimeError as refused:
            # Until the session of the one that was killed is over.
            if "nodes run: node-0 of broker-0" in str(refused):
                return False
            raise
        return True

    await until(starts)
    await send(second.name_server, 2 * COUNT, COUNT)
    found = await read(second.name_server, "readers", COUNT)
    assert {one[2] for one in found} == {one[2] for one in numbered(2 * COUNT, COUNT)}


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
        async with Admin(one.name_server, config=PATIENT) as admin:
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
        async with Admin(one.name_server, config=PATIENT) as admin:
            await admin.create_topic("orders", QUEUES)
        await send(one.name_server, 0, COUNT)
        there = {
            "serviceUrl": pulsar.admin_url,
            "brokerServiceUrl": pulsar.service_url,
        }
        before = stored()
        west.admin("POST", f"clusters/{WEST}/migrate?migrated=true", there)
        await until(lambda: f'not followed" to={pulsar.service_url}' in log.read_text())
        async with Producer(
            one.name_server, "senders", config=PATIENT_PRODUCER
        ) as producer:
            with pytest.raises(RemotingError):
                await producer.send(Message("orders", b"late"), timeout_s=SEND_S)
        assert space not in pulsar.admin("GET", f"namespaces/{TENANT}")
        assert stored() == before
    finally:
        one.kill()
