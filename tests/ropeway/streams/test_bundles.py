"""Bundles have all records of a key in one row, and give them back one by one."""

from __future__ import annotations

from ropeway.streams.bundles import dump, from_bundles, in_order, packed, to_bundles

RECORDS = [("a", 1, 5), ("b", [2], 7), ("a", None, 6), (("a", 1), "x", 8)]


def test_a_key_is_a_row_and_its_records_come_back() -> None:
    batch = to_bundles(RECORDS)
    assert batch.num_rows == 3
    assert sorted(map(repr, from_bundles(batch))) == sorted(map(repr, RECORDS))


def test_keys_that_are_equal_but_not_the_same_stay_apart() -> None:
    keys = [1, 1.0, True, "1", b"1", None, None]
    batch = to_bundles([(key, at, at) for at, key in enumerate(keys)])
    assert batch.num_rows == 6
    assert list(map(repr, (key for key, _, _ in from_bundles(batch)))) == list(
        map(repr, keys)
    )


def test_records_of_several_bundles_are_in_the_order_of_their_times() -> None:
    given = [("k", "b", 2), ("k", "d", 3)], [("k", "a", 1), ("k", "c", 2)]
    bundles = [to_bundles(one).column("value")[0].as_py() for one in given]
    assert list(in_order(bundles)) == [("a", 1), ("b", 2), ("c", 2), ("d", 3)]


def test_what_may_change_is_put_in_as_it_is_now() -> None:
    value = [1]
    items = [(packed(value), 1), (packed("same"), 2)]
    value.append(2)
    assert list(in_order([dump(items)])) == [([1], 1), ("same", 2)]


def test_no_records_are_no_rows() -> None:
    assert to_bundles([]).num_rows == 0
