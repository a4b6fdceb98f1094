"""The store: what is written is found by its key, by its time, and after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.pop import store
from ropeway.gateway.pop.store import Entry, Store

if TYPE_CHECKING:
    from pathlib import Path

PLACE = ("readers", "orders", 3)


def change(start: int, visible_ms: int, open_bits: int = 0b11, place=PLACE):
    key = store.key_of(place, start, 1000, visible_ms)
    return key, store.value_of(0, open_bits, (start, start + 1))


def test_a_batch_is_read_as_it_was_written():
    place = ("groß", "%RETRY%groß+Ü", 1023)
    key = store.key_of(place, 1 << 50, 1 << 41, 1 << 42)
    value = store.value_of(16, 0b101, (1 << 50, (1 << 50) + 3, (1 << 52) - 1))
    assert store.entry_of(key, value) == Entry(
        place,
        1 << 50,
        1 << 41,
        1 << 42,
        16,
        0b101,
        (1 << 50, (1 << 50) + 3, (1 << 52) - 1),
    )
    assert store.visible_ms_of(key) == 1 << 42
    assert store.entry_of(key, value).open_offsets() == [1 << 50, (1 << 52) - 1]


def test_a_batch_of_any_size_is_read_as_it_was_written():
    key = store.key_of(PLACE, 7, 1000, 2000)
    for size in range(1, 33):
        offsets = tuple(range(7, 7 + size))
        assert store.entry_of(key, store.value_of(0, 1, offsets)).offsets == offsets


@pytest.mark.parametrize(
    "numbers", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (1 << 64, 0, 0), (0, 1 << 64, 0)]
)
def test_numbers_that_no_batch_has_make_no_key(numbers):
    with pytest.raises(ValueError, match="no batch has such numbers"):
        store.key_of(PLACE, *numbers)


def test_changes_are_read_as_they_were_written():
    changes = [change(1, 50), (change(2, 60)[0], b""), change(3, 70)]
    assert list(store.load(store.dump(changes))) == changes
    assert list(store.load(b"")) == []


def test_a_batch_is_there_until_it_is_taken_out(tmp_path: Path):
    index = Store.open(tmp_path / "pop")
    one, two = change(1, 50), change(2, 60)
    index.apply([one, two], (7, 8))
    assert index.get([one[0], two[0], change(3, 70)[0]]) == [one[1], two[1], b""]
    index.apply([(one[0], b"")], (8, 9))
    assert index.get([one[0], two[0]]) == [b"", two[1]]
    assert index.checkpoint() == (8, 9)
    index.close()
    index = Store.open(tmp_path / "pop")
    assert index.get([one[0], two[0]]) == [b"", two[1]]
    assert index.checkpoint() == (8, 9)
    index.close()


def test_what_is_due_comes_in_order_of_time(tmp_path: Path):
    index = Store.open(tmp_path / "pop")
    changes = [change(start, visible) for start, visible in ((1, 70), (2, 50), (3, 60))]
    index.apply(changes, (1, 1))
    assert index.due(0, 49, 9) == []
    assert index.due(0, 60, 9) == [changes[1], changes[2]]
    assert index.due(0, 99, 1) == [changes[1]]
    assert index.due(51, 99, 9) == [changes[2], changes[0]]
    assert (index.next_ms(0), index.next_ms(61), index.next_ms(71)) == (50, 70, None)
    index.close()


def test_batches_are_counted_and_found_by_their_queue(tmp_path: Path):
    index = Store.open(tmp_path / "pop")
    other = ("readers", "orders", 4)
    # A queue whose names end alike is another one.
    alike = ("readers", "my-orders", 3)
    ours = [change(1, 50), change(2, 60, 0b10)]
    index.apply([*ours, change(1, 55, 1, other), change(1, 55, 1, alike)], (1, 1))
    assert index.counts() == {PLACE: 3, other: 1, alike: 1}
    assert index.of_place(PLACE) == ours
    assert index.page(b"", 2) == [ours[0], change(1, 55, 1, alike)]
    assert index.page(change(1, 55, 1, alike)[0], 9) == [
        change(1, 55, 1, other),
        ours[1],
    ]
    index.clear()
    assert index.counts() == {}
    assert index.checkpoint() is None
    index.close()


def test_a_damaged_store_is_made_anew(tmp_path: Path):
    directory = tmp_path / "pop"
    index = Store.open(directory)
    index.apply([change(1, 50)], (1, 1))
    index.close()
    (directory / "CURRENT").write_bytes(b"no manifest\n")
    index = Store.open(directory)
    assert index.counts() == {}
    index.close()
    index = Store.open(directory, anew=True)
    assert index.checkpoint() is None
    index.close()


def test_a_store_that_another_process_has_is_left_alone(tmp_path: Path):
    index = Store.open(tmp_path / "pop")
    index.apply([change(1, 50)], (1, 1))
    with pytest.raises(OSError, match="LOCK"):
        Store.open(tmp_path / "pop")
    assert index.counts() == {PLACE: 2}
    index.close()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Store.open(tmp_path / "file" / "pop")
