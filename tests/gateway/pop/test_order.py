"""The order book: what blocks a queue, what frees it, and how often messages came."""

from __future__ import annotations

from ropeway.gateway.pop.order import UNUSED_MS, OrderBook

PLACE = ("g", "t", 0)
OTHER = ("g", "t", 1)
NOW = 1_000_000
LATER = NOW + 60_000


def taken(*offsets: int, attempt: str | None = None, at_ms: int = NOW) -> OrderBook:
    book = OrderBook()
    book.note(PLACE, attempt, at_ms, 60_000, offsets)
    return book


def done(book: OrderBook, offset: int, at_ms: int = NOW) -> int | None:
    """Acknowledge; where the group goes on then."""
    page = book.find(PLACE, at_ms, offset)
    if page is None:
        return None
    page.open.discard(offset)
    return page.next_offset


def test_a_queue_is_blocked_until_all_is_acknowledged_or_visible():
    book = taken(1, 2, 3)
    assert book.blocks(PLACE, None, NOW)
    assert not book.blocks(OTHER, None, NOW)
    assert [done(book, offset) for offset in (1, 2)] == [2, 3]
    assert book.blocks(PLACE, None, LATER - 1)
    assert not book.blocks(PLACE, None, LATER)
    assert done(book, 3) == 4
    assert not book.blocks(PLACE, None, NOW)


def test_progress_stops_before_what_is_not_acknowledged():
    book = taken(1, 2, 3)
    assert [done(book, offset) for offset in (3, 2)] == [1, 1]
    assert done(book, 1) == 4


def test_offsets_may_have_gaps():
    book = taken(1, 5, 9)
    assert [done(book, offset) for offset in (1, 9, 5)] == [5, 5, 10]


def test_what_is_not_out_by_that_pop_is_not_found():
    book = taken(1, 2)
    assert done(book, 3) is None
    assert done(book, 1, at_ms=NOW - 1) is None
    assert done(book, 1) == 2
    assert done(book, 1) is None
    assert OrderBook().find(PLACE, NOW, 1) is None


def test_the_same_attempt_enters_again():
    book = taken(1, 2, attempt="a")
    assert not book.blocks(PLACE, "a", NOW)
    assert book.blocks(PLACE, "b", NOW)
    assert book.blocks(PLACE, None, NOW)
    assert taken(1).blocks(PLACE, None, NOW)


def test_messages_are_counted_when_they_come_again():
    book = taken(1, 2)
    assert book.get(PLACE).counts == {}
    page = book.note(PLACE, None, LATER, 60_000, (1, 2, 3))
    assert page.counts == {1: 1, 2: 1}
    page = book.note(PLACE, None, LATER + 60_000, 60_000, (2, 3))
    assert page.counts == {2: 2, 3: 1}


def test_the_same_attempt_counts_nothing():
    book = taken(1, 2, attempt="a")
    book.note(PLACE, "b", LATER, 60_000, (1, 2))
    page = book.note(PLACE, "b", LATER + 1, 60_000, (1, 2))
    assert page.counts == {1: 1, 2: 1}


def test_queues_are_counted_by_themselves():
    book = taken(1)
    book.note(OTHER, None, NOW, 60_000, (1,))
    assert book.get(OTHER).counts == {}
    assert book.note(PLACE, None, LATER, 60_000, (1,)).counts == {1: 1}


def test_a_message_that_is_kept_longer_blocks_longer():
    book = taken(1, 2)
    book.get(PLACE).visible_ms[2] = LATER + 5000
    assert book.blocks(PLACE, None, LATER)
    assert not book.blocks(PLACE, None, LATER + 5000)
    book.get(PLACE).visible_ms.update({1: NOW + 10, 2: NOW + 10})
    assert not book.blocks(PLACE, None, NOW + 10)


def test_queues_that_are_free_again_are_given_once():
    book = taken(1)
    book.note(OTHER, None, NOW, 90_000, (1,))
    assert book.take_free(LATER - 1) == []
    assert book.take_free(LATER) == [PLACE]
    assert book.take_free(LATER) == []
    assert book.waits
    assert book.take_free(NOW + 90_000) == [OTHER]
    assert not book.waits


def test_one_that_is_blocked_anew_is_given_later():
    book = taken(1)
    book.note(PLACE, None, NOW + 30_000, 60_000, (1,))
    assert book.take_free(LATER) == []
    assert book.take_free(NOW + 90_000) == [PLACE]


def test_whoever_takes_over_keeps_a_queue_blocked():
    book = OrderBook()
    book.block(PLACE, 7, LATER)
    assert book.blocks(PLACE, "any", LATER - 1)
    assert book.take_free(LATER) == [PLACE]
    assert book.find(PLACE, NOW - 1, 7) is None


def test_unused_pages_are_torn_out():
    book = taken(1)
    book.clean(LATER + UNUSED_MS)
    assert book.get(PLACE) is not None
    book.clean(LATER + UNUSED_MS + 1)
    assert book.get(PLACE) is None


def test_pages_of_what_is_gone_are_torn_out():
    book = taken(1)
    book.note(("h", "t", 0), None, NOW, 1, (1,))
    book.note(("g", "u", 0), None, NOW, 1, (1,))
    assert len(book) == 3
    book.forget(group="g", topic="t")
    assert len(book) == 2
    assert book.get(PLACE) is None
    book.forget(topic="t")
    assert book.get(("h", "t", 0)) is None
    book.drop(("g", "u", 0))
    book.drop(("g", "u", 0))
    assert book.get(("g", "u", 0)) is None


def test_pages_of_a_queue_that_leaves_are_torn_out_and_no_others():
    book = taken(1)
    for place in (("h", "t", 0), ("h", "t", 1), ("h", "u", 0)):
        book.note(place, None, NOW, 1, (1,))
    book.leave("t", 0)
    assert len(book) == 2
    assert book.get(PLACE) is book.get(("h", "t", 0)) is None
    assert book.get(("h", "t", 1)) is not None
