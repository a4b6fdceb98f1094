"""What a cluster is to have, as a file."""

import pytest

from ropeway.gateway.cli.declared import given, read
from ropeway.gateway.cli.failures import MisusedError


def test_members_that_are_left_out_are_not_given():
    found = read(b"topics: {a: {queues: 2}, b: }\npolicies: []", "f")
    assert found.topics is not None
    assert {name: given(one) for name, one in found.topics.items()} == {
        "a": {"queues": 2},
        "b": {},
    }
    assert not found.groups
    assert found.policies == []
    assert not read(b"", "f").topics


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics: [", "flow node"),
        ("topic: {}", "unknown field `topic`"),
        ("topics: {a: {queue: 2}}", "unknown field `queue`"),
        ("topics: {a: {queues: many}}", "Expected `int"),
        ("topics: {a: {perm: 5}}", "topics.a.perm is 5; allowed: 2, 4, 6"),
        ("groups: {g: {read_at: home}}", "groups.g.read_at is 'home'"),
        ("users: {u: {type: Boss}}", "allowed: Super, Normal"),
        ("policies: [{user: u}]", "missing required field `resource`"),
        (
            "policies: [{user: u, resource: Topic:a, actions: [Pub], decision: Never}]",
            "policies.u Topic:a.decision is 'Never'",
        ),
        (
            "policies: [&p {user: u, resource: Topic:a, actions: [Pub]}, *p]",
            "2 policies of u for Topic:a; allowed: one",
        ),
        ("quotas: [{topic: a, send_bytes: -1}]", ">= 0"),
        ("quotas: [{send_bytes: 1}]", "a quota of nobody; allowed: a topic or a"),
        ("quotas: [{topic: a, group: b}]", "a quota of topic a and group b; allowed"),
        ("quotas: [{topic: a}, {topic: a}]", "2 quotas of topic a; allowed: one"),
    ],
)
def test_what_makes_no_sense_is_refused(text, said):
    with pytest.raises(MisusedError) as refused:
        read(text.encode(), "cluster.yaml")
    assert said in str(refused.value)
    assert str(refused.value).startswith("cluster.yaml: ")
