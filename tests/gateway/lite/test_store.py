"""The index of lite topics in RocksDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.lite.store import Known, Noted, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(tmp_path / "index")
    yield made
    made.close()


def note(store: Store, *messages: tuple[str, int], parent: str = "rooms") -> None:
    found = [Noted(lite, offset, 1000 + offset) for lite, offset in messages]
    ends: dict[str, int] = {}
    for one in found:
        ends[one.lite] = one.offset
    known = [Known(lite, 1000 + at, {3: at + 1}) for lite, at in ends.items()]
    store.note(parent, 3, found, known, (found[-1].offset + 1, 77))


def test_messages_of_a_lite_topic_come_in_their_order(store: Store):
    note(store, ("a", 0), ("ab", 1), ("a", 2), ("a", 300))
    assert store.offsets("rooms", "a", 3, 0, 32) == [0, 2, 300]
    assert store.offsets("rooms", "a", 3, 1, 1) == [2]
    assert store.offsets("rooms", "ab", 3, 0, 32) == [1]
    assert store.offsets("rooms", "a", 2, 0, 32) == []
    assert store.offsets("room", "a", 3, 0, 32) == []


def test_the_last_messages_before_an_offset_are_found(store: Store):
    note(store, ("a", 0), ("b", 1), ("a", 2), ("a", 5))
    back = [store.back_from("rooms", "a", 3, 6, count) for count in range(5)]
    assert back == [6, 5, 2, 0, 0]
    assert store.back_from("rooms", "a", 3, 5, 1) == 2
    assert store.back_from("rooms", "a", 3, 0, 1) == 0
    assert store.back_from("rooms", "c", 3, 9, 1) == 9


def test_what_is_known_outlives_a_restart(tmp_path: Path):
    first = Store.open(tmp_path / "index")
    note(first, ("a", 0), ("b", 1), ("a", 2))
    first.close()
    again = Store.open(tmp_path / "index")
    assert again.checkpoint_of("rooms", 3) == (3, 77)
    assert again.checkpoint_of("rooms", 2) is None
    assert sorted(again.topics("rooms")) == [
        Known("a", 1002, {3: 3}),
        Known("b", 1001, {3: 2}),
    ]
    again.close()


def test_what_retention_has_taken_is_cut_off_step_by_step(store: Store):
    note(store, ("a", 0), ("b", 1), ("a", 2), ("b", 3))
    assert [store.cut("rooms", 3, 3, 2) for _ in range(3)] == [2, 1, 0]
    assert store.offsets("rooms", "a", 3, 0, 32) == []
    assert store.offsets("rooms", "b", 3, 0, 32) == [3]


def test_a_dropped_lite_topic_is_gone_and_those_with_longer_names_stay(store: Store):
    note(store, ("a", 0), ("a-b", 1), ("ab", 2))
    store.drop("rooms", ["a"])
    assert store.offsets("rooms", "a", 3, 0, 32) == []
    assert [one.lite for one in store.topics("rooms")] == ["a-b", "ab"]
    assert store.offsets("rooms", "a-b", 3, 0, 32) == [1]
    # What is left of it goes with the rest of its queue.
    assert store.cut("rooms", 3, 9, 10) == 3


def test_a_parent_is_forgotten_and_those_with_longer_names_stay(store: Store):
    for parent in ("rooms", "rooms2", "room"):
        note(store, ("a", 0), parent=parent)
    store.forget("rooms")
    assert store.topics("rooms") == []
    assert store.checkpoint_of("rooms", 3) is None
    for parent in ("rooms2", "room"):
        assert store.offsets(parent, "a", 3, 0, 1) == [0]
        assert store.checkpoint_of(parent, 3) == (1, 77)


def test_a_damaged_index_is_made_anew(tmp_path: Path):
    directory = tmp_path / "index"
    first = Store.open(directory)
    note(first, ("a", 0))
    first.close()
    (directory / "CURRENT").write_text("nothing")
    again = Store.open(directory)
    assert again.topics("rooms") == []
    again.close()
