"""Properties are found in place, as they would be in a map of all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.node.sql import terms
from ropeway.gateway.wire import properties

PIECES = st.lists(
    st.sampled_from(["a", "b", "\x01", "\x02", "a\x011\x02", "ba\x01x\x02", "\u00fc"]),
    max_size=10,
).map("".join)


@given(PIECES)
def test_a_property_is_what_a_map_of_all_has(text: str):
    value = terms.property_of(b"a")(b"\x02%b\x02" % text.encode())
    assert value == (properties.parse(text).get("a", "").encode() or None)


@pytest.mark.parametrize(
    ("conditions", "every", "some"),
    [
        ((True, True), True, True),
        ((True, False), False, True),
        ((True, None), None, True),
        ((None, True), None, True),
        ((False, None), False, None),
        ((None, False), False, None),
        ((None, None), None, None),
        ((False, False), False, False),
    ],
)
def test_and_and_or_know_the_unknown(conditions, every, some):
    parts = [terms.constant(one) for one in conditions]
    assert terms.every(parts)(b"") is every
    assert terms.some(parts)(b"") is some


def test_what_decides_ends_the_asking():
    def fails(_pairs: bytes) -> bool:
        raise ValueError

    assert terms.every([terms.constant(False), fails])(b"") is False
    assert terms.some([terms.constant(True), fails])(b"") is True
