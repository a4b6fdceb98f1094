"""A plan as a file: `ropeway apply` reads it, and people in 80 columns."""

from __future__ import annotations

import pytest

from ropeway.client.admin_under_way import UnderWay
from ropeway.gateway.cli import declared
from ropeway.gateway.cli.migration_checks import size_text
from ropeway.gateway.cli.migration_file import lines, summary
from ropeway.gateway.cli.migration_plan import Plan, make
from ropeway.gateway.wire.access_bodies import (
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
    UserInfo,
)
from tests.gateway.cli.inventories import HERE, cluster, group, topic

NAMES = ["no", "1", "null", "%x", "-", "|", "on", "1e3", "_"]
"""What YAML takes for something else where it stands bare."""
ENTRY = PolicyEntryInfo(resource="Topic:no", actions=["Pub"], source_ips=["10.0.0.0/8"])
POLICY = AclInfo(
    subject="User:no", policies=[PolicyInfo(policy_type="Custom", entries=[ENTRY])]
)


KINDS = ["delayed", "timed", "half", "popped", "retry", "dead"]


def text(plan: Plan) -> str:
    made = lines(plan, name="old (mq-1:9876)", target="mq-2:9876", now_ms=1)
    return "\n".join(made) + "\n"


def test_what_is_written_is_read_as_it_was_meant():
    source = cluster(
        topics=[topic(name, attributes={"message.type": "FIFO"}) for name in NAMES],
        groups=[group(name, {}, retry_max_times=3) for name in NAMES],
        users=[UserInfo(username="no", user_type="Normal", user_status="enable")],
        policies=[POLICY],
    )
    read = declared.read(text(make(source, HERE, [])).encode(), "plan.yaml")
    assert read.topics == {
        name: declared.TopicSetup(queues=1, perm=6, attributes={"message.type": "FIFO"})
        for name in NAMES
    }
    assert [*(read.groups or {})] == NAMES
    assert read.users == {"no": declared.UserSetup(type="Normal", status="enable")}
    assert read.policies == [
        declared.Policy("no", "Topic:no", ["Pub"], "Allow", ["10.0.0.0/8"])
    ]


def test_what_does_not_move_is_a_comment_with_its_reason():
    source = cluster(topics=[topic("a.b"), topic("orders")])
    shown = text(make(source, HERE, []))
    assert '\n  # "a.b":\n' in shown
    assert "problem: topic 'a.b': The specified topic: a.b, contains" in shown
    read = declared.read(shown.encode(), "plan.yaml")
    assert [*(read.topics or {})] == ["orders"]
    nothing = text(make(cluster(topics=[topic("a.b")]), HERE, []))
    assert declared.read(nothing.encode(), "plan.yaml") == declared.Declared()


@pytest.mark.parametrize(
    "kind", ["delayed", "timed", "half", "popped", "retry", "dead"]
)
def test_what_is_under_way_is_named(kind):
    found = UnderWay(
        kind=kind, broker="broker-a", messages=1234, is_bound=True, topics={"orders": 5}
    )
    shown = text(make(cluster(under_way=[found], untold=["its size"]), HERE, []))
    assert "#   broker-a: at most 1,234 " in shown
    assert "#     orders: 5\n" in shown
    assert "#   its size\n" in shown


def test_a_line_has_80_columns_but_for_a_long_name():
    source = cluster(
        topics=[topic("x" * 127), topic("orders", messages=3, order=True)],
        groups=[group("kitchen", {"orders": 7})],
        silent=["broker-b"],
    )
    shown = text(make(source, HERE, []))
    long = [line for line in shown.splitlines() if len(line) > 80]
    assert all("x" * 127 in line for line in long)


def test_topics_that_belong_together_are_named():
    groups = [group("kitchen", {"orders": 0, "prices": 0})]
    source = cluster(topics=[topic("orders"), topic("prices")], groups=groups)
    assert "#   orders, prices; read by kitchen\n" in text(make(source, HERE, []))


def test_a_line_says_how_much_moves():
    source = cluster(topics=[topic("a.b"), topic("orders")], silent=["broker-b"])
    found = summary(make(source, HERE, []))
    assert found == "1 thing planned, 1 left out, 2 problems"


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**41, "2.0 TiB")],
)
def test_sizes_are_in_the_unit_that_fits(size, said):
    assert size_text(size) == said
