"""What a plan has of a source: users' own things, and what moves of them."""

from __future__ import annotations

from ropeway.client.admin_clients import ClientGroup
from ropeway.client.admin_doctor import Check
from ropeway.gateway.cli.migration_plan import client_counts, make, sets
from ropeway.gateway.wire.access_bodies import (
    AclInfo,
    PolicyEntryInfo,
    PolicyInfo,
    UserInfo,
)
from tests.gateway.cli.inventories import HERE, MEMBER, cluster, group, topic

OWN_TOPICS = [
    *("TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "broker-a"),
    *("DefaultCluster", "DefaultCluster_REPLY_TOPIC", "rmq_sys_wheel_timer"),
    *("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "%RETRY%kitchen", "%DLQ%kitchen"),
]
OWN_GROUPS = ["TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS", "CID_ONS-HTTP-PROXY"]


def test_what_a_broker_makes_for_itself_is_not_planned():
    source = cluster(
        topics=[topic(name) for name in [*OWN_TOPICS, "orders"]],
        groups=[group(name, {}) for name in [*OWN_GROUPS, "kitchen"]],
    )
    plan = make(source, HERE, [])
    assert [one.name for one in plan.topics] == ["orders"]
    assert [one.name for one in plan.groups] == ["kitchen"]
    assert plan.problems() == []


def test_a_thing_with_a_problem_does_not_move_and_others_do():
    full = Check("disk", "problem", "the disk is full")
    source = cluster(topics=[topic("a.b"), topic("orders", messages=3)])
    plan = make(source, HERE, [full])
    assert [one.moves for one in plan.topics] == [False, True]
    assert [one.check for one in plan.problems()] == ["disk", "topic"]
    assert plan.topics[1].setup == {"queues": 1, "perm": 6}
    there = make(source, cluster(topics=[topic("orders", messages=1)]), [])
    assert [one.moves for one in there.topics] == [False, False]


def test_a_topic_says_who_reads_it():
    source = cluster(
        topics=[topic("orders", messages=2)], groups=[group("kitchen", {"orders": 1})]
    )
    plan = make(source, HERE, [])
    assert plan.topics[0].notes == [
        "2 messages in 1 queue on 1 broker",
        "read by kitchen",
    ]
    assert plan.groups[0].notes == ["1 message to read", "no consumer is connected"]


def test_topics_that_one_group_reads_belong_together():
    reads = {
        "a": ["orders", "prices"],
        "b": ["stock"],
        "c": ["stock", "prices"],
        "d": ["news", "%RETRY%d"],
        "e": ["x", "y"],
        "f": ["orders"],
    }
    topics = [topic(name) for name in ("news", "orders", "prices", "stock", "x", "y")]
    groups = [group(name, dict.fromkeys(of, 0)) for name, of in reads.items()]
    plan = make(cluster(topics=topics, groups=groups), HERE, [])
    assert sets(plan) == [
        (["orders", "prices", "stock"], ["a", "b", "c", "f"]),
        (["x", "y"], ["e"]),
    ]


def entry(resource: str) -> PolicyEntryInfo:
    return PolicyEntryInfo(resource=resource, actions=["Pub"], decision="Allow")


def test_users_go_without_passwords_and_policies_with_their_user():
    users = [
        UserInfo(username="alice", password="hush", user_type="Normal"),
        UserInfo(username="root", password="hush", user_type="Super"),
    ]
    custom = PolicyInfo(policy_type="Custom", entries=[entry("Topic:orders")])
    default = PolicyInfo(policy_type="Default", entries=[entry("Topic:*")])
    policies = [
        AclInfo(subject="User:alice", policies=[custom, default]),
        AclInfo(subject="Role:x", policies=[custom]),
    ]
    here = cluster(users=[UserInfo(username="root")])
    plan = make(cluster(users=users, policies=policies), here, [])
    assert [(one.name, one.setup) for one in plan.users] == [
        ("alice", {"type": "Normal"})
    ]
    assert [one.name for one in plan.policies] == ["alice Topic:orders"]
    texts = [one.text for one in plan.checks]
    assert any("user root exists at the target" in text for text in texts)
    assert sum("are not in the plan" in text for text in texts) == 2
    assert "hush" not in repr(plan[3:])


def test_clients_are_counted_once_by_language_and_version():
    found = [
        ClientGroup("a", "consumer", "g", "", "JAVA", 453),
        ClientGroup("a", "producer", "p", "", "JAVA", 453),
        ClientGroup("b", "producer", "p", "", "GO", 317),
        ClientGroup("c", "producer", "p", "", "JAVA", 453),
    ]
    assert [count for _, count in client_counts(cluster(clients=found))] == [2, 1]
    assert MEMBER.version == 453
