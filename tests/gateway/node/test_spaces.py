"""Which namespaces a configuration means."""

from gateway.config import Config, PulsarConfig
from gateway.node import spaces


def test_a_cluster_has_a_namespace_of_its_own_unless_one_is_named():
    assert spaces.own(Config(pulsar=PulsarConfig())) == ("rocketmq", "DefaultCluster")
    named = Config(cluster="c", pulsar=PulsarConfig(tenant="t", namespace="n"))
    assert spaces.own(named) == ("t", "n")
    assert spaces.own(Config(cluster="c", pulsar=PulsarConfig())) == ("rocketmq", "c")
