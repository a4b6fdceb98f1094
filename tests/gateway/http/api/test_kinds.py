"""What topics are for."""

from types import SimpleNamespace

import pytest

from ropeway.gateway.http.api.kinds import kinds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("orders", "normal"),
        ("%RETRY%readers", "retry"),
        ("%DLQ%readers", "dead-letters"),
        ("TBW102", "system"),
        ("rmq_sys_wheel_timer", "system"),
        ("DefaultCluster", "system"),
        ("DefaultCluster_REPLY_TOPIC", "system"),
        ("broker-1", "system"),
    ],
)
def test_a_name_tells_what_a_topic_is_for(name, kind):
    node = SimpleNamespace(
        config=SimpleNamespace(cluster="DefaultCluster"),
        routes=SimpleNamespace(brokers={"broker-1": ()}),
    )
    assert kinds(node)(name).value == kind
