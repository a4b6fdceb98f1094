"""A plan as JSON has what the source holds, in the names of other commands."""

from __future__ import annotations

import msgspec

from ropeway.client.admin_under_way import UnderWay
from ropeway.gateway.cli.migration_plan import make
from ropeway.gateway.cli.migration_rows import row
from ropeway.gateway.wire.access_bodies import UserInfo
from tests.gateway.cli.inventories import HERE, broker, cluster, group, topic


def test_a_plan_has_offsets_lags_and_what_does_not_move():
    source = cluster(
        brokers=[broker(clock_ms=None, stored_bytes=None)],
        topics=[topic("a.b"), topic("orders", messages=3)],
        groups=[group("kitchen", {"orders": 2})],
        users=[UserInfo(username="alice", password="hush", user_type="Super")],
        under_way=[UnderWay(kind="half", broker="broker-a", messages=1, is_bound=True)],
        untold=["its size"],
    )
    found = msgspec.to_builtins(row(make(source, HERE, [])))
    (one,) = found["brokers"]
    assert one.keys() == {"broker", "cluster", "address", "version"}
    assert [(it["topic"], it["moves"]) for it in found["topics"]] == [
        ("a.b", False),
        ("orders", True),
    ]
    orders = found["topics"][1]
    assert orders["groups"] == ["kitchen"]
    (queue,) = orders["queues"]
    assert (queue["begin"], queue["end"]) == (0, 3)
    (kitchen,) = found["groups"]
    assert (kitchen["lag"], kitchen["model"], kitchen["moves"]) == (2, "", True)
    assert found["users"] == [{"user": "alice", "type": "Super", "status": None}]
    assert found["under_way"][0]["at_most"]
    assert found["untold"] == ["its size"]
    assert "hush" not in repr(found)
