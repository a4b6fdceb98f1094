"""Which namespaces a configuration means."""

from ropeway.gateway.config import Config
from ropeway.gateway.node import namespaces
from ropeway.gateway.pulsar_config import PulsarConfig


def test_a_cluster_has_a_namespace_of_its_own_unless_one_is_named():
    assert namespaces.own(Config(pulsar=PulsarConfig())) == (
        "rocketmq",
        "DefaultCluster",
    )
    named = Config(cluster="c", pulsar=PulsarConfig(tenant="t", namespace="n"))
    assert namespaces.own(named) == ("t", "n")
    assert namespaces.own(Config(cluster="c", pulsar=PulsarConfig())) == (
        "rocketmq",
        "c",
    )
