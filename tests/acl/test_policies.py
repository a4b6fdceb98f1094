"""Rules of ACL 2.0 match and take precedence as RocketMQ's do."""

import pytest

from ropeway.acl.administration import Rule, Rules, RulesError
from ropeway.acl.api import Action, Need, Resource, ResourceKind
from ropeway.acl.policies import Policies, action_name, parse_resource
from tests.acl.hooks import cluster, group, topic

PUB, SUB, GET = Action.PUB, Action.SUB, Action.GET


def allow(resource, *actions, sources=()):
    return Rule(resource, actions or ("All",), allowed=True, sources=sources)


def deny(resource, *actions, sources=()):
    return Rule(resource, actions or ("All",), allowed=False, sources=sources)


def decide(need, *custom, default=(), address="192.0.2.7"):
    found = Policies(Rules("User:a", custom, default)).decide(need, address)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("rule", "need", "outcome"),
    [
        (allow("Topic:orders", "Pub"), topic("orders", PUB), True),
        (allow("Topic:orders", "Pub"), topic("orders", SUB), None),
        (allow("Topic:orders", "Pub"), topic("orders", SUB, PUB), True),
        (allow("Topic:orders", "Pub"), topic("orders2", PUB), None),
        (allow("Topic:orders", "Pub"), group("orders", PUB), None),
        (allow("Topic:ord*", "Pub"), topic("orders", PUB), True),
        (allow("Topic:ord*", "Pub"), topic("or", PUB), None),
        (allow("Topic:*", "pub"), topic("orders", PUB), True),
        (allow("*"), cluster(GET), True),
        (allow("Topic:*", "All"), cluster(GET), None),
        (allow("Topic:orders"), topic("*", GET), None),
        (allow("Topic:ord*"), topic("*", GET), None),
        (allow("Topic:*"), topic("*", GET), True),
        # Look-alikes are other names: a Cyrillic o, another case, another norm.
        (allow("Topic:orders"), topic("\u043erders", PUB), None),
        (allow("Topic:orders"), topic("Orders", PUB), None),
        (allow("Topic:cafe*"), topic("caf\u00e9", PUB), None),
    ],
)
def test_a_rule_matches_its_resources_and_actions(rule, need, outcome):
    assert decide(need, rule) is outcome


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("rules", "outcome"),
    [
        ([deny("*"), allow("Topic:*")], True),
        ([deny("Topic:*"), allow("Topic:ord*")], True),
        ([deny("Topic:ord*"), allow("Topic:order*")], True),
        ([allow("Topic:order*"), deny("Topic:orders")], False),
        ([allow("Topic:orders", "Pub"), deny("Topic:orders", "All")], False),
    ],
)
def test_the_most_exact_rule_decides_then_what_denies(rules, outcome, turned):
    given = reversed(rules) if turned else rules
    assert decide(topic("orders", PUB), *given) is outcome


def test_default_rules_count_where_no_custom_one_matches():
    need = topic("orders", PUB)
    assert decide(need, default=(allow("Topic:*"),)) is True
    assert decide(need, deny("*"), default=(allow("Topic:orders"),)) is False
    assert decide(need, deny("Topic:other"), default=(allow("Topic:*"),)) is True
    assert decide(need) is None


def test_a_rule_may_hold_for_some_addresses_alone():
    rule = allow("Topic:orders", sources=("10.0.0.0/8", "192.0.2.9"))
    need = topic("orders", PUB)
    assert decide(need, rule, address="10.1.1.1") is True
    assert decide(need, rule, address="192.0.2.9") is True
    assert decide(need, rule, address="192.0.2.7") is None
    assert decide(need, rule, address="") is None


@pytest.mark.parametrize(
    "rule",
    [
        allow(""),
        allow("orders"),
        allow("Topic:"),
        allow("Queue:orders"),
        allow("Topic:a*b"),
        allow("Topic:a*b*"),
        allow("Topic:\u043erders"),
        allow("Topic:" + "x" * 256),
        allow("Topic:orders", "Any"),
        allow("Topic:orders", "Publish"),
        Rule("Topic:orders", (), allowed=True),
        allow("Topic:orders", sources=("10.0.0.0/40",)),
        allow("Topic:orders", sources=("",)),
    ],
)
def test_what_is_no_rule_is_refused(rule):
    with pytest.raises(RulesError):
        Policies(Rules("User:a", (rule,)))


def test_the_longest_name_of_a_topic_can_be_named():
    longest = "x" * 255
    assert parse_resource(f"Topic:{longest}") == (ResourceKind.TOPIC, longest, False)


def test_kinds_and_actions_are_read_in_any_case():
    assert parse_resource("topic:orders") == (ResourceKind.TOPIC, "orders", False)
    assert parse_resource("CLUSTER:*") == (ResourceKind.CLUSTER, None, False)
    assert action_name("PUB") == "Pub"
    assert action_name("all") == "All"


def test_what_decided_is_told():
    policies = Policies(Rules("User:a", (deny("Topic:o*", "Pub", sources=("::1",)),)))
    need = Need(Resource(ResourceKind.TOPIC, "orders"), (PUB,))
    assert policies.decide(need, "::1") == (
        False,
        "Custom policy Topic:o* Pub deny from ::1",
    )
