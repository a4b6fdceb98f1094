"""Attributes and their changes."""

import pytest

from gateway.node.attributes import (
    BadAttributeError,
    alter,
    alter_topic,
    entry_format,
    parse,
)


def test_changes_are_read_from_text():
    text = "+message.type=FIFO,-reserve.time"
    assert parse(text) == {"+message.type": "FIFO", "-reserve.time": ""}
    assert parse("") == parse(None) == {}


def test_a_name_comes_once():
    with pytest.raises(BadAttributeError, match="comes twice"):
        parse("+a=1,+a=2")


def test_changes_add_replace_and_delete():
    current = {"a": "1", "b": "2", "c": "3"}
    assert alter(current, {"+a": "9", "-b": "", "+d": "4"}) == {
        "a": "9",
        "c": "3",
        "d": "4",
    }
    assert current == {"a": "1", "b": "2", "c": "3"}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"a": "1"}, "allowed: \\+name=value or -name"),
        ({"+": "1"}, "allowed: \\+name=value or -name"),
        ({"-z": ""}, "'z' is not there to be deleted"),
    ],
)
def test_changes_need_a_sign_and_something_to_delete(changes, complaint):
    with pytest.raises(BadAttributeError, match=complaint):
        alter({"a": "1"}, changes)


def test_a_topic_keeps_what_it_may_have():
    changes = {
        "+message.type": "DELAY",
        "+reserve.time": "-1",
        "+queue.type": "SimpleCQ",
    }
    assert alter_topic(None, changes) == {
        "message.type": "DELAY",
        "reserve.time": "-1",
        "queue.type": "SimpleCQ",
    }


@pytest.mark.parametrize(
    ("current", "changes", "complaint"),
    [
        (None, {"+colour": "red"}, "'colour'; allowed: message.type"),
        (None, {"+message.type": "MIXED"}, "is 'MIXED'; allowed: DELAY, FIFO"),
        (None, {"+cleanup.policy": "COMPACTION"}, "allowed: DELETE"),
        (None, {"+reserve.time": "soon"}, "allowed: a whole number from -1 on"),
        ({}, {"+queue.type": "SimpleCQ"}, "can only be set at creation"),
        ({}, {"+entry.format": "PULSAR"}, "can only be set at creation"),
        (None, {"+entry.format": "AVRO"}, "is 'AVRO'; allowed: PACKED, PULSAR"),
    ],
)
def test_a_topic_is_refused_what_it_may_not_have(current, changes, complaint):
    with pytest.raises(BadAttributeError, match=complaint):
        alter_topic(current, changes)


def test_entries_are_packed_unless_a_topic_says_otherwise():
    assert entry_format({}) == entry_format({"entry.format": "PACKED"}) == "packed"
    assert entry_format({"entry.format": "PULSAR"}) == "pulsar"
