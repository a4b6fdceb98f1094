"""Blocks as bytes: what is encoded decodes, and nothing else does."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import LogError, Record
from ropeway.storage.file.block import (
    ENTRY,
    HEADER,
    Encoded,
    Run,
    decode,
    intact_after,
    lay_out,
)
from ropeway.storage.file.compiled import writing_may_be_compiled
from tests.compiler import needs_compiled_forms

ADD_UPS = writing_may_be_compiled.twins["add_up"]
LAY_OUTS = writing_may_be_compiled.twins["lay_out"]

RECORDS = st.lists(
    st.builds(
        Record,
        st.binary(min_size=4, max_size=200),
        st.integers(-(1 << 31), (1 << 31) - 1),
        st.lists(st.text(st.characters(codec="utf-8"), max_size=9), max_size=3),
    ),
    min_size=1,
    max_size=3,
)
APPENDS = st.lists(
    st.tuples(RECORDS, st.integers(-(1 << 63), (1 << 63) - 1), st.none()), max_size=3
)


def block(place: int = 100) -> bytes:
    partition = SimpleNamespace(ordinal=4, key_seed=crc32(b"t"))
    run = Run(partition, 10)  # type: ignore[arg-type]
    run.appends = [([Record(b"abc", -5, ("k",)), Record(b"de", 0, ())], 99, print)]
    run.count = 2
    made = Encoded(*lay_out([run], 5000, place, 8, 4000, 123))
    return made.header + made.body


def test_a_block_decodes_to_what_was_encoded() -> None:
    data = block(100)
    found = decode(memoryview(bytes(100) + data), 100, 5000, 8)
    assert found is not None
    assert (found.length, found.durable, found.written_ms) == (len(data), 4000, 123)
    first, second = ENTRY.pack(164, 3, -5, 99), ENTRY.pack(167, 2, 0, 99)
    assert found.runs == [(4, 10, first + second)]
    assert found.keys == struct.pack("<II", 164, crc32(b"k", crc32(b"t")))
    assert data[64:69] == b"abcde"


def test_a_block_ends_within_4_gib_of_its_segment() -> None:
    size = len(block(0))
    assert len(block((1 << 32) - 1 - size)) == size
    for place in ((1 << 32) - size, (1 << 32) + 1 - size):
        with pytest.raises(OverflowError, match="4 GiB"):
            block(place)


def test_any_cut_and_any_flipped_bit_is_noticed() -> None:
    data = bytes(100) + block(100)
    for cut in range(100, len(data)):
        assert decode(memoryview(data)[:cut], 100, 5000, 8) is None
    for at in range(100, len(data)):
        for bit in range(8):
            bad = bytearray(data)
            bad[at] ^= 1 << bit
            assert decode(memoryview(bad), 100, 5000, 8) is None, (at, bit)


def test_a_block_of_another_place_or_log_does_not_count() -> None:
    view = memoryview(bytes(100) + block(100))
    assert decode(view, 100, 5000, 8) is not None
    assert decode(view, 100, 5001, 8) is None
    assert decode(view, 100, 5000, 9) is None


def test_a_newer_format_is_told_from_damage() -> None:
    data = bytearray(block(0))
    data[8] = 2
    data[4:8] = crc32(data[8:]).to_bytes(4, "little")
    assert len(data) > HEADER.size
    with pytest.raises(LogError, match="has format 2; this program reads up to 1"):
        decode(memoryview(data), 0, 5000, 8)


@needs_compiled_forms
@given(st.lists(APPENDS, max_size=3), st.integers(0, 1 << 30))
def test_the_compiled_form_lays_a_block_out_alike(runs, place):
    made = []
    for number, appends in enumerate(runs):
        partition = SimpleNamespace(ordinal=number, key_seed=crc32(b"%d" % number))
        run = Run(partition, 10 * number)
        run.appends = appends
        run.count = sum(len(records) for records, _, _ in appends)
        made.append(run)
    python, compiled = LAY_OUTS
    arguments = (made, 5000, place, (1 << 64) - 1, 4000, 123)
    assert compiled(*arguments) == python(*arguments)


@needs_compiled_forms
@pytest.mark.parametrize(
    "append",
    [([Record("text", 0, [])], 1, None), ([(b"abcd", 0)], 1, None), ([], "now", None)],
)
def test_the_compiled_form_refuses_what_is_no_record(append):
    run = Run(SimpleNamespace(ordinal=0, key_seed=0), 0)
    run.appends = [append]
    run.count = len(append[0])
    with pytest.raises(TypeError):
        LAY_OUTS[1]([run], 0, 0, 0, 0, 0)


@needs_compiled_forms
@pytest.mark.parametrize("count", [0, 1, 3, 1 << 30, (1 << 64) - 1])
def test_the_compiled_form_refuses_a_run_that_miscounts_its_records(count):
    run = Run(SimpleNamespace(ordinal=0, key_seed=0), 0)
    run.appends = [([Record(b"abcd", 0, [])], 1, None)] * 2
    run.count = count
    with pytest.raises((ValueError, OverflowError)):
        LAY_OUTS[1]([run], 0, 0, 0, 0, 0)


@needs_compiled_forms
@given(RECORDS, st.sets(st.integers(0, 2)), st.sampled_from([3, 60, 1 << 20]))
def test_the_compiled_form_adds_records_up_alike(records, true_ones, most):
    for at in true_ones & {*range(len(records))}:
        data = records[at].data
        records[at] = records[at]._replace(data=len(data).to_bytes(4, "big") + data[4:])
    python, compiled = ADD_UPS
    assert compiled(records, most) == python(records, most)


@needs_compiled_forms
@pytest.mark.parametrize("given", [(), ([], None), ([b"abcd"], 9), (None, 9)])
def test_the_compiled_form_adds_nothing_else_up(given):
    with pytest.raises(TypeError):
        ADD_UPS[1](*given)


@pytest.mark.parametrize(
    "form",
    [ADD_UPS[0], pytest.param(ADD_UPS[1], marks=needs_compiled_forms)],
    ids=["python", "compiled"],
)
def test_records_add_up_where_each_says_its_size_and_fits(form) -> None:
    def sized(size: int, says: int | None = None) -> Record:
        head = struct.pack(">i", size if says is None else says)
        return Record(head.ljust(size, b"x"), 0, ())

    assert form([], 100) == (0, 0)
    assert form([sized(4), sized(100), sized(99)], 100) == (203, 0)
    keys = [sized(4)._replace(keys=("a", "b")), sized(5)._replace(keys=["c"])]
    assert form(keys, 100) == (9, 3)
    for wrong in (sized(101), sized(50, 51), sized(50, 49)):
        assert form([sized(4), wrong], 100) == (-1, 0)


def test_whole_blocks_are_found_wherever_they_begin() -> None:
    for place in (0, 1, 100):
        view = memoryview(bytes(place) + block(place))
        found = list(intact_after(view, view.obj.find, 0, 5000, 8))  # type: ignore[union-attr]
        assert [at for at, _ in found] == [place]
