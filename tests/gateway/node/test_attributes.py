"""Attributes and their changes."""

import pytest

from ropeway.gateway.node.attributes import (
    BadAttributeError,
    alter_group,
    alter_topic,
    entry_format,
    fit_for_compaction,
    is_compacted,
    parse,
    reserve_ms,
)

TYPE = "message.type"


def test_changes_are_read_from_text():
    text = "+message.type=FIFO,-reserve.time"
    assert parse(text) == {"+message.type": "FIFO", "-reserve.time": ""}
    assert parse("") == parse(None) == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("+a=1,+a=2", "key duplication: \\+a; allowed: once"),
        ("a=1", "add/alter attribute format is wrong: a; allowed: \\+name=value"),
        ("-a=1", "add/alter attribute format is wrong: -a"),
        ("a", "delete attribute format is wrong: a; allowed: -name"),
        ("+a", "delete attribute format is wrong: \\+a"),
    ],
)
def test_text_that_is_no_change_is_refused(text, complaint):
    with pytest.raises(BadAttributeError, match=complaint):
        parse(text)


def test_changes_add_replace_and_delete():
    current = {TYPE: "FIFO", "reserve.time": "5", "queue.type": "SimpleCQ"}
    assert alter_topic(current, {"+message.type": "DELAY", "-reserve.time": ""}) == {
        TYPE: "DELAY",
        "queue.type": "SimpleCQ",
    }
    assert current[TYPE] == "FIFO"
    assert alter_topic({}, {"+reserve.time": "7"}) == {"reserve.time": "7"}


@pytest.mark.parametrize(
    ("current", "changes", "complaint"),
    [
        ({}, {"a": "1"}, "kv string format wrong"),
        ({}, {"+": "1"}, "kv string format wrong"),
        ({}, {"+a-b": "1"}, "kv string format wrong.*allowed: \\+name=value or -name"),
        ({}, {"!a": "1"}, "wrong format key: a"),
        ({}, {"+a": "1", "-a": ""}, "unsupported key: a"),
        ({TYPE: "FIFO"}, {"+message.type": "FIFO", "-message.type": ""}, "duplication"),
        ({}, {"-z": ""}, "attempt to delete a nonexistent key: z"),
        (None, {"-message.type": ""}, "only add attribute is supported while creating"),
    ],
)
def test_a_change_needs_a_sign_and_something_to_delete(current, changes, complaint):
    with pytest.raises(BadAttributeError, match=complaint):
        alter_topic(current, changes)


def test_a_topic_keeps_what_it_may_have():
    changes = {
        "+message.type": "DELAY",
        "+reserve.time": "-1",
        "+queue.type": "SimpleCQ",
        "+cleanup.policy": "DELETE",
    }
    assert alter_topic(None, changes) == {
        "message.type": "DELAY",
        "reserve.time": "-1",
        "queue.type": "SimpleCQ",
        "cleanup.policy": "DELETE",
    }


@pytest.mark.parametrize(
    ("current", "changes", "complaint"),
    [
        (None, {"+colour": "red"}, "unsupported key: colour; allowed: message.type"),
        (None, {"+message.type": "normal"}, "not in set: .*; message.type is 'normal'"),
        (None, {"+cleanup.policy": "KEEP"}, "not in set: \\[COMPACTION, DELETE\\]"),
        (None, {"+queue.type": "BatchCQ"}, "value is not in set: \\[SimpleCQ\\]"),
        (None, {"+reserve.time": "soon"}, "not in range\\(-1, 9223372036854775807\\)"),
        (None, {"+reserve.time": "-2"}, "not in range"),
        (None, {"+reserve.time": "9223372036854775808"}, "not in range"),
        ({}, {"+queue.type": "SimpleCQ"}, "unchangeable attribute. key: queue.type"),
        (
            {"queue.type": "SimpleCQ"},
            {"-queue.type": ""},
            "unchangeable attribute. key: queue.type; allowed: at creation",
        ),
        ({}, {"+entry.format": "PULSAR"}, "unchangeable attribute. key: entry.format"),
        (None, {"+entry.format": "AVRO"}, "set: \\[PACKED, PULSAR\\]; .* is 'AVRO'"),
    ],
)
def test_a_topic_is_refused_what_it_may_not_have(current, changes, complaint):
    with pytest.raises(BadAttributeError, match=complaint):
        alter_topic(current, changes)


def test_a_topic_may_be_compacted_from_its_creation_on_and_later():
    wanted = {"cleanup.policy": "COMPACTION"}
    assert alter_topic(None, {"+cleanup.policy": "COMPACTION"}) == wanted
    assert alter_topic({}, {"+cleanup.policy": "COMPACTION"}) == wanted
    assert alter_topic(wanted, {"-cleanup.policy": ""}) == {}
    assert is_compacted(wanted)
    assert not is_compacted({"cleanup.policy": "DELETE"})


def test_where_compaction_needs_a_format_a_new_topic_gets_it_and_no_other_one():
    compacted = {"cleanup.policy": "COMPACTION"}
    shared = {**compacted, "entry.format": "PULSAR"}
    assert fit_for_compaction({}, "pulsar", created=True) == {}
    assert fit_for_compaction(compacted, "packed", created=False) == compacted
    assert fit_for_compaction(compacted, "pulsar", created=True) == shared
    assert fit_for_compaction(shared, "pulsar", created=False) == shared
    for given, needed, created in (
        (compacted, "pulsar", False),
        ({**compacted, "entry.format": "PACKED"}, "pulsar", True),
        (shared, "packed", True),
    ):
        with pytest.raises(BadAttributeError, match="from the topic's creation on"):
            fit_for_compaction(given, needed, created=created)


def test_a_group_has_attributes_of_its_own():
    assert alter_group(None, {"+priority.factor": "50"}) == {"priority.factor": "50"}
    assert alter_group({"priority.factor": "50"}, {"-priority.factor": ""}) == {}
    for changes in ({"+priority.factor": "101"}, {"+message.type": "FIFO"}):
        with pytest.raises(BadAttributeError):
            alter_group(None, changes)


def test_entries_are_packed_unless_a_topic_says_otherwise():
    assert entry_format({}) == entry_format({"entry.format": "PACKED"}) == "packed"
    assert entry_format({"entry.format": "PULSAR"}) == "pulsar"


def test_a_topic_says_in_hours_how_long_a_tier_keeps_it():
    assert reserve_ms({"reserve.time": "2"}) == 7_200_000
    assert reserve_ms({"reserve.time": "-1"}) is reserve_ms({}) is None
