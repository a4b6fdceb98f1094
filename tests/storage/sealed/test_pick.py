"""One read over blocks: against the plainest way of doing it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import Filter
from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.pick import Pick
from tests.storage.sealed.segments import EXAMPLE, FLAGS, made, some_records

if TYPE_CHECKING:
    from ropeway.storage.sealed.index import Block
    from tests.storage.sealed.segments import Made, One


def read(
    segment: Made,
    offset: int,
    end: int,
    limits: tuple[int, int],
    wanted: Filter | None,
) -> tuple[Pick, list[bytes]]:
    """What a reader of one segment does, and the records that it gets."""
    index = decode_index(segment.index)

    def block(number: int) -> Block:
        place, size = index.data_at(number, number + 1)
        return index.open_block(number, segment.data[place : place + size])

    pick = Pick(offset, limits, wanted)
    for number in range(index.block_at(offset), index.blocks):
        if not pick.goes_on:
            break
        columns = index.columns(number)
        whole = pick.look(columns, end, partial(block, number))
        left = range(columns.at(pick.offset), columns.at(end))
        assert whole == (not left), "it says whether all was looked at"
        if not whole:
            break
    data, found = b"".join(pick.chunk().data), []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(data[:size])
        data = data[size:]
    return pick, found


def plainly(
    records: list[One],
    offset: int,
    end: int,
    limits: tuple[int, int],
    wanted: Filter,
) -> tuple[int, int, list[bytes]]:
    """Where a read goes on, how many it looked at, and what it finds."""
    found: list[bytes] = []
    looked = 0
    for one in records:
        if one.offset < offset or one.offset >= end:
            continue
        if looked == wanted.looks or len(found) == limits[0]:
            break
        fits = wanted.tag_hashes is None or one.tag in wanted.tag_hashes
        if fits and (wanted.accept is None or wanted.accept(one.data)):
            if found and sum(map(len, found)) + len(one.data) > limits[1]:
                break
            found.append(one.data)
        looked += 1
        offset = one.offset + 1
    return offset, looked, found


@given(st.data(), st.sampled_from(FLAGS), st.booleans(), st.booleans())
def test_a_read_finds_what_the_plainest_one_finds(
    data: st.DataObject, flags: int, by_tag: bool, by_text: bool
) -> None:
    records = data.draw(some_records(flags))
    first, last = records[0].offset, records[-1].offset
    wanted = Filter(
        data.draw(st.frozensets(st.integers(-2, 2))) if by_tag else None,
        (lambda one: len(one) % 2 == 0) if by_text else None,
        data.draw(st.integers(1, 25)),
    )
    where = st.integers(max(first - 3, 0), last + 3)
    offset, end = data.draw(where), data.draw(where)
    limits = data.draw(st.tuples(st.integers(1, 25), st.integers(0, 200)))
    pick, found = read(made(records, flags), offset, end, limits, wanted)
    wanted_offset, looked, plain = plainly(records, offset, end, limits, wanted)
    assert found == plain
    assert (pick.looked, pick.offset) == (looked, wanted_offset)
    assert pick.chunk().records == len(found)
    assert pick.chunk().next_offset == pick.offset


class MissingError(Exception):
    """A block is not there."""


@pytest.mark.parametrize("wanted", [None, Filter({5}), Filter(None, lambda _: True)])
def test_what_is_missing_changes_nothing(wanted: Filter | None) -> None:
    index = decode_index(made(EXAMPLE).index)
    pick = Pick(9, (9, 1000), wanted)

    def missing() -> Block:
        raise MissingError

    with pytest.raises(MissingError):
        pick.look(index.columns(0), 99, missing)
    assert (pick.offset, pick.looked, pick.records) == (9, 0, 0)


def test_a_block_of_which_nothing_is_wanted_is_not_asked_for() -> None:
    index = decode_index(made(EXAMPLE).index)
    pick = Pick(0, (9, 1000), Filter({77}))

    def unwanted() -> Block:
        raise AssertionError

    assert pick.look(index.columns(0), 99, unwanted)
    assert pick.offset == EXAMPLE[index.starts[1] - 1].offset + 1
