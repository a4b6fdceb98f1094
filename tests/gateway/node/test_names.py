"""Names: which are legal, and which the system keeps for itself."""

from __future__ import annotations

import pytest

from ropeway.gateway.node import names


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("orders", None),
        ("%RETRY%g", None),
        ("a|b_C-9%", None),
        ("x" * 127, None),
        ("x" * 128, "128 characters is longer"),
        ("%RETRY%" + "x" * 248, None),
        ("%RETRY%" + "x" * 249, "256 characters is longer"),
        ("%DLQ%" + "x" * 250, None),
        ("", "blank"),
        ("  ", "blank"),
        ("a.b", "illegal characters"),
        ("a\n", "illegal characters"),
        ("٣", "illegal characters"),
    ],
)
def test_topics_are_named_as_a_real_broker_wants(name: str, complaint: str | None):
    found = names.topic_complaint(name)
    if complaint is None:
        assert found is None
    else:
        assert complaint in found


def test_groups_have_at_most_120_characters():
    assert names.group_complaint("x" * 120) is None
    assert "max length: 120" in names.group_complaint("x" * 121)
    assert names.topic_complaint(names.retry_topic("x" * 120)) is None


def test_what_is_the_systems_is_known():
    for name in ("TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_REVIVE_LOG_a"):
        assert names.is_system_topic(name)
    assert not names.is_system_topic("orders")
    assert "TBW102" not in names.NOT_FOR_SENDING
    assert "SCHEDULE_TOPIC_XXXX" in names.NOT_FOR_SENDING


def test_nobody_changes_the_systems_topics_or_those_of_the_cluster():
    for name in ("TBW102", "c", "b"):
        assert "conflict with system topic" in names.reserved_complaint(name, "c", "b")
    assert names.reserved_complaint("orders", "c", "b") is None


def test_what_offsets_keep_beside_progress_is_no_group():
    assert names.is_inner("reset:readers")
    assert names.is_inner("lite:readers")
    assert not names.is_inner("readers")


def test_progress_in_a_lite_topic_is_in_its_parents_queues():
    assert names.topic_of_progress("%LMQ%$rooms$a") == "rooms"
    assert names.topic_of_progress("rooms") == "rooms"
