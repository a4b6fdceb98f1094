"""Lite topics in memory, by when they were used."""

from __future__ import annotations

from ropeway.gateway.lite.catalogue import Catalogue
from ropeway.gateway.lite.store import Known, Noted


def made(*messages: tuple[str, int, int]) -> Catalogue:
    catalogue = Catalogue()
    catalogue.note(0, [Noted(*one) for one in messages])
    return catalogue


def test_messages_make_lite_topics_and_move_them_to_the_end():
    catalogue = made(("a", 0, 10), ("b", 1, 11))
    assert catalogue.names() == ["a", "b"]
    assert catalogue.note(2, [Noted("a", 7, 12), Noted("a", 8, 13)]) == ["a"]
    assert catalogue.names() == ["b", "a"]
    topic = catalogue.get("a")
    assert topic is not None
    assert (topic.ends, topic.last_ms) == ({0: 1, 2: 9}, 13)
    assert catalogue.known(["a", "absent"]) == [Known("a", 13, {0: 1, 2: 9})]


def test_what_was_known_is_in_order_of_its_last_messages():
    catalogue = Catalogue([Known("b", 20, {0: 2}), Known("a", 10, {0: 1})])
    assert catalogue.names() == ["a", "b"]
    assert len(catalogue) == 2
    assert "a" in catalogue


def test_the_unused_are_taken_the_oldest_first_and_no_others():
    catalogue = made(("a", 0, 10), ("b", 1, 11), ("c", 2, 12))
    assert catalogue.take_unused(10, 9) == []
    assert catalogue.take_unused(12, 1) == ["a"]
    assert catalogue.take_unused(12, 9) == ["b"]
    assert catalogue.names() == ["c"]


def test_those_without_messages_are_taken_too():
    catalogue = made(("a", 0, 10), ("b", 1, 11), ("c", 2, 12))
    assert catalogue.take_empty([1], 9) == ["a"]
    assert catalogue.take_empty([1], 9) == []
    assert catalogue.take_empty([9], 1) == ["b"]
    # A queue that is not there any more has nothing.
    assert catalogue.take_empty([], 9) == ["c"]
