"""Blocks become groups by partition; the compiled form gives what Python's gives."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.checked_header import CHECKED_FROM
from ropeway.storage.file import block as blocks
from ropeway.storage.file import log_scan
from ropeway.storage.file.block import ENTRY, HEADER, MAGIC, RUN
from ropeway.storage.file.compiled import may_be_compiled
from tests.compiler import needs_compiled_forms

assert log_scan  # it declares what may be compiled

FORMS = [form for form in may_be_compiled.twins["gather"] if form is not None]
TEXTS = st.lists(st.text(max_size=9), min_size=1, max_size=4)
RUNS = st.lists(st.tuples(st.integers(1, 3), TEXTS), min_size=1, max_size=3)


def whole(text: str) -> bytes:
    """A record with a text."""
    return struct.pack(">i", 4 + len(text.encode())) + text.encode()


def encoded(runs: list[tuple[int, int, list[str]]], place: int = 64) -> bytes:
    """A block of runs: ordinal, base offset, texts that are their own keys."""
    made: list[Any] = []
    for ordinal, base_offset, texts in runs:
        records = [
            (whole(text), len(text), (text,) * (len(text) % 3)) for text in texts
        ]
        made.append(
            SimpleNamespace(
                partition=SimpleNamespace(ordinal=ordinal, key_seed=ordinal),
                base_offset=base_offset,
                count=len(texts),
                appends=[(records, 1000 + base_offset, None)],
            )
        )
    block = blocks.Encoded(*blocks.lay_out(made, 0, place, 77, 0, place))
    return block.header + block.body


def numbered(
    all_runs: list[list[tuple[int, list[str]]]],
) -> tuple[list[bytes], dict[int, list[str]]]:
    """Blocks whose offsets go on, and all texts by ordinal."""
    texts: dict[int, list[str]] = {}
    found: list[bytes] = []
    for runs in all_runs:
        placed = []
        for ordinal, some in runs:
            before = texts.setdefault(ordinal, [])
            placed.append((ordinal, len(before), some))
            before += some
        found.append(encoded(placed, 64 + sum(map(len, found))))
    return found, texts


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(RUNS, min_size=1, max_size=4), st.integers(0, 80))
def test_each_partitions_records_stand_together_with_their_keys(
    form: Any, runs: list[list[tuple[int, list[str]]]], cut: int
) -> None:
    made, texts = numbered(runs)
    stretch = b"".join(made)
    torn = made[0][: min(cut, len(made[0]) - 1)]
    taken, damaged, log_id, written_ms, groups = form(stretch + torn)
    assert (taken, damaged, log_id) == (len(stretch), False, 77)
    assert written_ms == 64 + sum(map(len, made[:-1]))
    assert {group[0]: group[2] for group in groups} == {
        ordinal: len(some) for ordinal, some in texts.items()
    }
    for ordinal, base_offset, count, data, entries, keys in groups:
        wanted = texts[ordinal]
        assert (base_offset, count) == (0, len(wanted))
        assert data == b"".join(map(whole, wanted))
        tags = [tag for _, _, tag, _ in ENTRY.iter_unpack(entries)]
        assert tags == [len(text) for text in wanted]
        numbers = [key & 0xFFFFFFFF for (key,) in struct.iter_unpack("<Q", keys)]
        assert numbers == [
            at for at, text in enumerate(wanted) for _ in range(len(text) % 3)
        ]


@pytest.mark.parametrize("form", FORMS)
def test_a_gap_in_offsets_begins_another_group(form: Any) -> None:
    stretch = b"".join(encoded([(1, at, [f"{at}"])]) for at in (5, 7, 8))
    assert [group[1:3] for group in form(stretch)[4]] == [(5, 1), (7, 2)]


@pytest.mark.parametrize("form", FORMS)
def test_what_stands_before_damage_is_taken(form: Any) -> None:
    good, bad = encoded([(1, 0, ["a"])]), bytearray(encoded([(1, 1, ["b"])]))
    bad[-1] ^= 1
    taken, damaged, _, _, groups = form(good + bytes(bad) + good)
    assert (taken, damaged) == (len(good), True)
    assert [group[2] for group in groups] == [1]
    assert form(bytes(bad))[:2] == (0, True)
    assert form(b"") == (0, False, 0, 0, [])
    # A length that is no block's, and a checksum that is right for it.
    short = MAGIC + struct.pack("<IIII", 0, 0, 8, 0)
    assert form(short.ljust(HEADER.size, b"\0"))[:2] == (0, True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("at", "value"),
    [(56, 0), (HEADER.size + 16 + RUN.size + ENTRY.size, 0)],
    ids=["fewer keys than there are", "a run that ends before it begins"],
)
def test_a_block_that_contradicts_itself_is_damage(
    form: Any, at: int, value: int
) -> None:
    block = bytearray(encoded([(1, 0, ["abcd", "1234"])]))
    block[at : at + 4] = value.to_bytes(4, "little")
    block[4:8] = crc32(block[CHECKED_FROM:]).to_bytes(4, "little")
    assert form(bytes(block))[:2] == (0, True)


@needs_compiled_forms
@given(st.lists(RUNS, min_size=1, max_size=4), st.data())
def test_the_forms_agree_whatever_is_damaged(
    runs: list[list[tuple[int, list[str]]]], data: st.DataObject
) -> None:
    stretch = bytearray(b"".join(numbered(runs)[0]))
    for _ in range(data.draw(st.integers(0, 2))):
        stretch[data.draw(st.integers(0, len(stretch) - 1))] ^= 1 << data.draw(
            st.integers(0, 7)
        )
    python, compiled = may_be_compiled.twins["gather"]
    assert compiled is not None
    assert compiled(bytes(stretch)) == python(bytes(stretch))
