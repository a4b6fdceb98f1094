"""mqadmin works on nodes that share a Pulsar and a ZooKeeper, whichever it asks."""

import re

import pytest

from tests.system import printed
from tests.system.administration import MqAdmin
from tests.system.cluster import Cluster
from tests.system.pulsar import Pulsar
from tests.system.zookeeper import ZooKeeper
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.jvm, pytest.mark.slow]


def test_a_cluster_is_administered_through_any_node(
    pulsar: Pulsar, zookeeper: ZooKeeper, tmp_path
) -> None:
    cluster = Cluster(tmp_path / "cluster", pulsar, zookeeper.address)
    (tmp_path / "mqadmin").mkdir()
    try:
        cluster.start()
        with MqAdmin(tmp_path / "mqadmin") as admin:
            first, second = (node.name_server for node in cluster.nodes)

            def ask(line: str, node: str = first) -> str:
                return "\n".join(printed.comparable(line, admin(line, node)))

            def until_told(wanted: str, line: str, node: str) -> None:
                """Return when a node has seen what was changed through another."""
                until(lambda: wanted in ask(line, node))

            assert "success" in ask("updateTopic -t T1 -c DefaultCluster -r 2 -w 2")
            assert ask("clusterList", second).count("ADDRESS VERSION") == 2
            for number in range(3):
                sent = ask(f"sendMessage -t T1 -p {number} -k k -b broker-0 -i 0")
                assert "SEND_OK" in sent
            for node in (first, second):
                until_told("broker-0 0 0 3 ", "topicStatus -t T1", node)
                assert "max: 3, min: 0" in ask("queryCq -t T1 -q 0 -i 0", node)
                assert ask("queryMsgByKey -t T1 -k k", node).count("ID 0 ") == 3
                assert ask("printMsg -t T1", node).count("BODY: ") == 3
                stats = ask("statsAll -t T1", node)
                assert re.search(r"T1 0 N 3 NO_CONSUMER", stats), stats
            facts = admin(f"brokerStatus -b {first}", second)
            assert re.search(r"msgPutTotalTodayNow *: [3-9]", facts)
            assert "OK" in ask("wipeWritePerm -b broker-0", second)
            until_told('"perm":4', "topicRoute -t T1", first)
            assert "OK" in ask("addWritePerm -b broker-0", first)
            until_told('"perm":6', "topicRoute -t T1", second)
            assert "success" in ask("deleteTopic -c DefaultCluster -t T1", second)
            until(lambda: "T1" not in ask("topicList", first).split())
    finally:
        cluster.kill()
