"""Compiled forms of reading: each does what Python's form does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.file import selection
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.compiled import may_be_compiled
from tests.compiler import needs_compiled_forms

assert selection  # it declares what may be compiled

SIZES = st.sampled_from([0, 1, 7, 100]) | st.integers(0, 1 << 20)
GAPS = st.just(0) | st.integers(0, 200)
ENTRIES = st.lists(st.tuples(GAPS, SIZES, st.integers(-2, 2)), min_size=1, max_size=9)


def both(name: str, *given: Any) -> tuple[Any, Any]:
    python, compiled = may_be_compiled.twins[name]
    assert compiled is not None
    return python(*given), compiled(*given)


@needs_compiled_forms
@given(
    ENTRIES,
    st.integers(0, 1 << 62),
    st.integers(0, 9),
    SIZES,
    st.none() | st.frozensets(st.integers(-2, 2)),
    st.booleans(),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_picks_are_the_same(
    given: list[tuple[int, int, int]],
    offset: int,
    spare: int,
    max_bytes: int,
    tags: frozenset[int] | None,
    forced: bool,
    kind: type,
) -> None:
    packed, place = b"", 64
    for gap, size, tag_hash in given:
        place += gap
        packed += ENTRY.pack(place, size, tag_hash, 0)
        place += size
    # Without tags there are no more entries than are wanted.
    count = len(given) + spare if tags is None else spare + 1
    python, compiled = both(
        "pick", kind(packed), offset, count, max_bytes, tags, forced
    )
    assert compiled == python
    assert type(compiled[4]) is bool


@needs_compiled_forms
@given(st.lists(st.binary(max_size=9), max_size=5), st.binary(max_size=5), st.data())
def test_the_same_records_are_whole(
    bodies: list[bytes], rest: bytes, data: st.DataObject
) -> None:
    records = b"".join((4 + len(body)).to_bytes(4, "big") + body for body in bodies)
    sizes = [4 + len(body) for body in bodies]
    assert both("are_whole", records, sizes) == (True, True)
    other = data.draw(st.lists(st.integers(0, 20), max_size=5) | st.permutations(sizes))
    python, compiled = both("are_whole", memoryview(records + rest), list(other))
    assert compiled == python


@needs_compiled_forms
@given(st.binary(max_size=300), st.integers(0, (1 << 32) - 1))
def test_checksums_are_the_same(data: bytes, before: int) -> None:
    python, compiled = both("crc32", data, before)
    assert compiled == python


@needs_compiled_forms
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("pick", ("text", 0, 1, 1, None, True)),
        ("pick", (bytes(20), 0, 1, 1)),
        ("pick", (ENTRY.pack(0, 1, 0, 0), 0, 1, 1, 5, True)),
        ("are_whole", (b"", (1,))),
        ("are_whole", (b"", ["1"])),
        ("crc32", ("text",)),
    ],
)
def test_a_compiled_form_refuses_what_it_cannot_read(
    name: str, wrong: tuple[object, ...]
) -> None:
    compiled = may_be_compiled.twins[name][1]
    assert compiled is not None
    with pytest.raises(TypeError):
        compiled(*wrong)
