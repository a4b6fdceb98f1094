"""What stands in the way of a migration is said before anything changes."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropeway.client.admin_groups import Membership
from ropeway.gateway.cli import migration_checks as checks
from ropeway.gateway.wire import bodies
from tests.gateway.cli.inventories import HERE, MEMBER, broker, cluster, group, topic

STATIC = structs.replace(topic("orders"), is_static=True)
TABLE = topic("t", messages=3, attributes={"cleanup.policy": "COMPACTION"})
TOPICS = [
    (topic("a.b"), "problem", "illegal characters"),
    (topic("x" * 128), "problem", "longer than topic max length: 127"),
    (topic("broker-0"), "problem", "the target keeps this name for itself"),
    (topic("rmq_sys_x"), "problem", "the target keeps this name for itself"),
    (STATIC, "problem", "has logical queues"),
    (topic("orders", perm=1), "problem", "neither read nor written"),
    (topic("wide", read=1025), "problem", "has 1025 queues; allowed: 1024"),
    (topic("wide", "a", "b", read=600), "problem", "has 1200 queues; allowed: 1024"),
    (TABLE, "warning", "is compacted"),
    (topic("orders", messages=1), "warning", "no group reads its 1 message;"),
    (topic("orders", order=True), "warning", "is said to be ordered"),
    (topic("orders", read=4, write=8), "warning", "many queues to read as to write: 4"),
]


@pytest.mark.parametrize(("it", "state", "said"), TOPICS)
def test_a_topic_that_does_not_move_whole_is_named(it, state, said):
    found = [*checks.of_topic(it, [], HERE)]
    (one,) = [one for one in found if one.state == state]
    assert said in one.text
    assert it.topic in one.text
    assert one.check == "topic"
    assert one.advice


def test_a_topic_that_is_read_has_nothing_to_say_of_it():
    it = topic("orders", messages=3, read=8, attributes={"message.type": "FIFO"})
    assert [*checks.of_topic(it, ["kitchen"], HERE)] == []


def test_a_topic_with_contents_at_the_target_does_not_move():
    (found,) = checks.of_topic_here(topic("orders", messages=1204))
    assert found.state == "problem"
    assert "1,204 messages were stored in it" in found.text
    (found,) = checks.of_topic_here(topic("orders"))
    assert (found.state, found.advice) == ("warning", "")


BROADCASTING = Membership(members=[MEMBER], subscriptions={}, is_broadcast=True)
ONLINE = Membership(members=[MEMBER], subscriptions={})
SLOW = bodies.RetryPolicy(type="EXPONENTIAL")
GROUPS = [
    (group("a.b", {}), "problem", "illegal characters"),
    (group("x" * 121, {}), "problem", "longer than group max length: 120"),
    (group("g", {}, BROADCASTING), "warning", "broadcasts"),
    (group("g", {"orders": 7}), "warning", "has 7 messages to read, and no consumer"),
    (
        structs.replace(group("g", {}), pops=["orders"]),
        "warning",
        "is set to pop orders, which the plan does not set",
    ),
    (group("g", {}, group_retry_policy=SLOW), "warning", "not set group_retry_policy"),
    (
        group("g", {}, consume_timeout_minute=5, attributes={"a": "b"}),
        "warning",
        "the plan does not set attributes, consume_timeout_minute",
    ),
]


@pytest.mark.parametrize(("it", "state", "said"), GROUPS)
def test_a_group_that_does_not_move_whole_is_named(it, state, said):
    (found,) = checks.of_group(it, None)
    assert found.state == state
    assert said in found.text
    assert found.advice


def test_a_group_that_is_as_new_ones_are_has_nothing_to_say_of_it():
    assert [*checks.of_group(group("g", {"orders": 7}, ONLINE), None)] == []
    assert [*checks.of_group(group("g", {}), group("g", {}))] == []


def test_a_group_that_has_consumed_at_the_target_is_named():
    (found,) = checks.of_group(group("g", {}), group("g", {"orders": 0}))
    assert "has consumed at the target already" in found.text


def test_two_clusters_have_to_be_two_and_the_target_ropeway():
    source = cluster()
    assert checks.misuse(source, HERE) is None
    assert "are one cluster: both have broker-a:10911" in (
        checks.misuse(source, source) or ""
    )
    other = cluster(brokers=[broker("other")])
    assert "other:10911 is RocketMQ V5_5_0; allowed: Ropeway" in (
        checks.misuse(source, other) or ""
    )


SOURCES = [
    ({"silent": ["broker-b"]}, "problem", "broker-b of the source has no master"),
    ({"clusters": ["a", "b"]}, "warning", "knows 2 clusters"),
    ({"brokers": [broker(clock_ms=2600)]}, "warning", "about 2 s ahead of"),
    ({"brokers": [broker(clock_ms=-90_000)]}, "warning", "about 90 s behind"),
]


@pytest.mark.parametrize(("more", "state", "said"), SOURCES)
def test_a_source_that_is_not_whole_is_named(more, state, said):
    (found,) = checks.of_source(cluster(**more))
    assert found.state == state
    assert said in found.text


@pytest.mark.parametrize("clock_ms", [None, 0, 2400, -2400])
def test_a_clock_that_may_be_right_is_no_warning(clock_ms):
    assert [*checks.of_source(cluster(brokers=[broker(clock_ms=clock_ms)]))] == []


def test_a_target_that_is_too_small_is_named():
    source = cluster(brokers=[broker(stored_bytes=2**31), broker(stored_bytes=None)])
    for free_bytes in (2**31, None):
        enough = cluster(brokers=[broker(free_bytes=free_bytes)])
        assert [*checks.of_room(source, enough)] == []
    small = cluster(brokers=[broker(free_bytes=2**29), broker(free_bytes=2**29)])
    (found,) = checks.of_room(source, small)
    assert "keeps 2.0 GiB of messages, and the target's disks have 1.0 GiB" in (
        found.text
    )


def test_attributes_that_are_none_here_are_left_out_and_named():
    wanted = {"message.type": "FIFO", "queue.type": "BatchCQ", "x": "y"}
    kept, found = checks.attributes("orders", wanted)
    assert kept == {"message.type": "FIFO"}
    assert ["queue.type" in found[0].text, "attribute x" in found[1].text] == [True] * 2


def test_queues_are_spread_over_the_brokers_of_the_target():
    it = topic("orders", "a", "b", "c", read=4)
    brokers = [broker(f"broker-{number}", is_ropeway=True) for number in range(5)]
    assert [
        checks.queues_of(it, cluster(brokers=brokers[:count])) for count in (1, 2, 3, 5)
    ] == [12, 6, 4, 3]
