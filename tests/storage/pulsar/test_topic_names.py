"""RocketMQ's names and Pulsar's are one to one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import LogLimitError
from ropeway.storage.pulsar.topic_names import Names, PulsarName, parse_partition

NAMES = Names("public", "default")


@pytest.mark.parametrize(
    ("topic", "full"),
    [
        ("orders", "public/default/orders-partition-3"),
        ("blue%orders", "public/default/blue%25orders-partition-3"),
        ("acme|blue%orders", "acme/blue/orders-partition-3"),
        ("acme|default%orders", "acme/default/orders-partition-3"),
        ("%RETRY%billing", "public/default/%RETRY%billing-partition-3"),
        ("%RETRY%acme|blue%billing", "acme/blue/%RETRY%billing-partition-3"),
        ("%DLQ%blue%billing", "public/default/%DLQ%blue%25billing-partition-3"),
        ("SCHEDULE_TOPIC_XXXX", "public/default/SCHEDULE_TOPIC_XXXX-partition-3"),
        ("acme|blue", "public/default/acme|blue-partition-3"),
        ("a-partition-1", "public/default/a%2Dpartition-1-partition-3"),
        ("a%b", "public/default/a%25b-partition-3"),
        ("public|default%a|b%c", "public/default/a|b%25c-partition-3"),
    ],
)
def test_topics_have_these_names(topic: str, full: str) -> None:
    name = NAMES.pulsar(topic)
    assert name.partition(3) == f"persistent://{full}"
    assert parse_partition(name.partition(3)) == (name, 3)
    assert NAMES.rocketmq(name) == topic


@pytest.mark.parametrize(
    ("topic", "local"),
    [
        ("orders", "orders@7"),
        ("%RETRY%billing", "%RETRY%billing@7"),
        ("orders@7", "orders%407@7"),
        ("a-partition-1", "a%2Dpartition-1@7"),
    ],
)
def test_a_topic_that_is_made_again_has_another_name(topic: str, local: str) -> None:
    name = NAMES.pulsar(topic, 7)
    assert name == PulsarName("public", "default", local)
    assert name.generation == 7
    assert NAMES.pulsar(topic).generation == 0
    assert NAMES.rocketmq(name) == topic
    assert parse_partition(name.partition(3)) == (name, 3)


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("public|default%orders", "orders"),
        ("public|default%a%b", "a%b"),
        ("%RETRY%public|default%billing", "%RETRY%billing"),
    ],
)
def test_two_names_of_one_topic_have_one_form(long: str, short: str) -> None:
    assert NAMES.canonical(long) == short
    assert NAMES.pulsar(long) == NAMES.pulsar(short)
    NAMES.refuse_alias(short)
    with pytest.raises(LogLimitError, match=f"is called {re.escape(short)} here"):
        NAMES.refuse_alias(long)


def test_a_retry_topic_is_not_named_within_a_namespace() -> None:
    with pytest.raises(LogLimitError, match="is called %RETRY%billing here"):
        NAMES.refuse_alias("public|default%%RETRY%billing")


@given(st.text("%|abR-_=:. /ü", min_size=1) | st.text(min_size=1))
def test_every_name_is_refused_or_comes_back(topic: str) -> None:
    try:
        name = NAMES.pulsar(topic)
    except LogLimitError:
        return
    assert "/" not in name.local
    again = NAMES.rocketmq(name)
    assert NAMES.pulsar(again) == name
    assert NAMES.canonical(again) == again
    assert parse_partition(name.partition(9)) == (name, 9)
    later = NAMES.pulsar(topic, 1024)
    assert (NAMES.rocketmq(later), later.generation) == (again, 1024)
    assert name.generation == 0


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("a b|c%orders", "'a b' cannot be a tenant"),
        ("a|b|c%orders", "'b|c' cannot be"),
        ("acme|%orders", "'' cannot be"),
        ("acme|blue%", "has a namespace and no name"),
        ("%RETRY%", "has a namespace and no name"),
    ],
)
def test_what_pulsar_cannot_take_is_refused(topic: str, reason: str) -> None:
    with pytest.raises(LogLimitError, match=reason.replace("|", r"\|")):
        NAMES.pulsar(topic)


@pytest.mark.parametrize(
    "full",
    [
        "persistent://public/default/orders",
        "non-persistent://public/default/orders-partition-0",
        "persistent://public/default/orders-partition-x",
        "persistent://public/default/-partition-1",
        "orders-partition-1",
        "persistent://public/default/__ropeway@cluster-0-partition-0",
    ],
)
def test_other_topics_are_no_partitions(full: str) -> None:
    assert parse_partition(full) is None


def test_paths_of_the_admin_rest_are_quoted() -> None:
    assert PulsarName("t", "n", "%RETRY%g").path == "t/n/%25RETRY%25g"
