"""Sequence ids grow with terms first and offsets second, and say both."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.pulsar.terms import (
    LAST_OFFSET,
    LAST_TERM,
    after,
    claiming,
    next_offset_of,
    term_of,
)

terms = st.integers(0, LAST_TERM)
offsets = st.integers(0, LAST_OFFSET + 1)


@given(terms, offsets)
def test_an_id_says_its_term_and_the_next_offset(term: int, offset: int) -> None:
    assert term_of(after(term, offset)) == term_of(claiming(term)) == term
    assert next_offset_of(after(term, offset)) == offset
    assert next_offset_of(claiming(term)) is None


@given(terms, offsets, terms, offsets)
def test_ids_are_in_the_order_of_terms_then_offsets(
    term: int, offset: int, other_term: int, other_offset: int
) -> None:
    one, other = after(term, offset), after(other_term, other_offset)
    assert (one < other) == ((term, offset) < (other_term, other_offset))
    assert claiming(term) < one
    assert (claiming(other_term) < one) == (other_term <= term)


def test_ids_fit_into_what_pulsar_counts_with() -> None:
    assert after(LAST_TERM, LAST_OFFSET + 1) == (1 << 63) - 1
    assert (term_of(-1), next_offset_of(-1)) == (-1, None)
