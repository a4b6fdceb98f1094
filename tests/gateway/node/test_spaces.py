"""Which namespaces a configuration means."""

from gateway.config import Config
from gateway.node import spaces
from gateway.pulsar_config import PulsarConfig


def test_a_cluster_has_a_namespace_of_its_own_unless_one_is_named():
    assert spaces.own(Config(pulsar=PulsarConfig())) == ("rocketmq", "DefaultCluster")
    named = Config(cluster="c", pulsar=PulsarConfig(tenant="t", namespace="n"))
    assert spaces.own(named) == ("t", "n")
    assert spaces.own(Config(cluster="c", pulsar=PulsarConfig())) == ("rocketmq", "c")
