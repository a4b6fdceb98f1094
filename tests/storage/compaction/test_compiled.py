"""Compiled forms of compaction: built where they can be, and they do the same."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.compaction import steps
from ropeway.storage.compaction.compiled import may_be_compiled
from tests.compiler import needs_compiled_forms
from tests.storage.compaction.test_offset_map import keys_of, row

assert steps  # it declares what may be compiled

KEYS = st.lists(st.integers(0, 30) | st.none(), max_size=60)


@needs_compiled_forms
def test_every_form_was_built() -> None:
    assert may_be_compiled.twins.keys() == {"lay_out", "mark", "note", "staying"}
    assert all(twin for _, twin in may_be_compiled.twins.values())


@needs_compiled_forms
@given(KEYS, KEYS, st.integers(0, 20))
def test_both_forms_do_the_same(
    keys: list[int | None], asked: list[int | None], limit: int
) -> None:
    outcomes = []
    for form in (0, 1):
        low, high, offsets = (array("Q", bytes(8 * 40)) for _ in range(3))
        bits = bytearray(8)
        rows = b"".join(map(row, keys))
        found = may_be_compiled.twins["note"][form](
            rows, 3, low, high, offsets, 0, limit, bits, 3
        )
        may_be_compiled.twins["mark"][form](offsets, 5, 30, bits, 3)
        stays = may_be_compiled.twins["staying"][form](
            *keys_of(asked), low, high, offsets, 9
        )
        outcomes.append((found, low, high, offsets, bits, stays))
    assert outcomes[0] == outcomes[1]
