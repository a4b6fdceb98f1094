"""Which transactions are open, and when each comes up."""

from __future__ import annotations

import random
import time

from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.node.transactions.open_transactions import OpenTransactions


def test_what_is_due_comes_in_its_second_in_order_and_once():
    book = OpenTransactions()
    for offset, look_ms in enumerate([3000, 1001, 2000, 1000]):
        book.add(offset, offset, look_ms)
    assert book.take_due(999) == []
    assert book.take_due(1000) == [3]
    assert book.take_due(2999) == [1, 2]
    assert book.take_due(3000) == [0]
    assert book.take_due(99_999) == []
    book.put_off(1, 100_000)
    assert book.take_due(100_000) == [1]


def test_a_copy_takes_the_place_of_what_was_before():
    book = OpenTransactions()
    book.add(0, 0, 1000)
    book.add(1, 1, 1000)
    book.add(2, 0, 2000)
    book.add(3, 0, 3000)
    assert [book.current(origin) for origin in (0, 1, 2)] == [3, 1, None]
    assert book.take_due(2000) == [1]
    assert book.take_due(3000) == [3]
    assert len(book) == 2
    assert 3 in book
    assert 0 not in book


def test_the_floor_is_the_oldest_open_half_message():
    book = OpenTransactions(10)
    assert book.floor == 10
    for offset in range(10, 14):
        book.add(offset, offset, 0)
    book.finish(11, End.COMMITTED)
    assert book.floor == 10
    book.finish(10, End.ROLLED_BACK)
    assert book.floor == 12
    book.add(14, 12, 0)
    assert book.floor == 13
    book.finish(13, End.COMMITTED)
    assert book.floor == 14
    book.finish(12, End.GIVEN_UP)
    assert book.floor == 15
    book.add(15, 15, 0)
    book.drop(15)
    assert book.floor == 16


def test_a_transaction_ends_in_steps():
    book = OpenTransactions()
    book.add(0, 0, 1000)
    assert book.is_undecided(0)
    book.ending.add(0)
    assert not book.is_undecided(0)
    assert book.ended(0) is None
    book.end(0, End.COMMITTED)
    assert (book.ended(0), book.current(0), book.floor) == (End.COMMITTED, 0, 0)
    book.finish(0, End.COMMITTED)
    assert (book.ended(0), book.current(0), book.floor) == (End.COMMITTED, None, 1)


def test_only_so_many_ends_are_remembered():
    book = OpenTransactions()
    for origin in range(65_537):
        book.finish(origin, End.COMMITTED)
    assert book.ended(0) is None
    assert book.ended(1) is End.COMMITTED


def test_a_look_costs_what_is_due_and_not_what_is_open():
    book = OpenTransactions()
    for offset in range(200_000):
        book.add(offset, offset, 1_000_000 + offset % 30_000)
    book.put_off(5, 1000)
    began_s = time.process_time()
    for second in range(1000):
        assert book.take_due(second * 1000) == ([5] if second == 1 else [])
    assert time.process_time() - began_s < 1
    assert len(book.take_due(1_030_000)) == 200_000


def test_it_agrees_with_a_list_of_all_transactions():
    chance = random.Random(7)
    book = OpenTransactions()
    current: dict[int, int] = {}
    for offset in range(3000):
        if current and chance.random() < 0.5:
            origin = chance.choice(list(current))
        else:
            origin = offset
        book.add(offset, origin, 0)
        current[origin] = offset
        if current and chance.random() < 0.5:
            ended = chance.choice(list(current))
            book.finish(ended, End.COMMITTED)
            del current[ended]
        assert len(book) == len(current)
        assert book.floor == min(current.values(), default=offset + 1)
    assert book.take_due(0) == sorted(current.values())
    for origin, offset in current.items():
        assert book.current(origin) == offset
