"""Properties by columns are what they are one by one."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from ropeway.gateway.wire import properties
from ropeway.spark import pairs
from ropeway.spark.pairs import read_pairs

WIRE = st.lists(
    st.sampled_from([b"a", b"TAGS", "ä".encode(), b"\xff", b"\x01", b"\x02", b" "]),
    max_size=12,
).map(b"".join)


def taken_apart(found: list[bytes]) -> list[dict[str, str]]:
    offsets, names, values = read_pairs(pa.array(found, pa.binary()))
    at = offsets.to_pylist()
    both = [*zip(names.to_pylist(), values.to_pylist(), strict=True)]
    return [dict(both[begin:end]) for begin, end in pairwise(at)]


@given(st.lists(WIRE, max_size=4))
@example([b"a\x01b\x02c\x01d\x02", b"", b"no pair\x02a\x01b\x01c\x02"])
@example([b"a\x01b\x02a\x01c\x02", b"a\x01b\x02"])
@example([b"\x01b\x02a\x01\x02", b"a\x01b"])
def test_they_are_those_that_the_gateway_reads(found: list[bytes]) -> None:
    assert taken_apart(found) == [
        properties.parse(one.decode(errors="replace")) for one in found
    ]


def test_names_that_do_not_repeat_are_read_at_once() -> None:
    found = pa.array([b"a\x01b\x02c\x01d\x02"] * 3 + [b""], pa.binary())
    assert pairs._by_columns(found) is not None
