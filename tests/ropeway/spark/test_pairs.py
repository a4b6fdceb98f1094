"""Properties by columns are what they are one by one."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
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
    offsets, names, values, kinds = read_pairs(pa.array(found, pa.binary()))
    assert kinds.dictionary_decode() == names
    at = offsets.tolist()
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


@pytest.mark.parametrize(
    "end", [b"\x02", b""], ids=["ended", "unended, as Java's clients have it"]
)
def test_names_that_do_not_repeat_are_read_at_once(end: bytes) -> None:
    found = [b"a\x01b\x02\xc3\xa4\x01d" + end] * 3 + [b""]
    assert pairs._by_columns(pa.array(found, pa.binary())) is not None
    assert taken_apart(found) == [{"a": "b", "ä": "d"}] * 3 + [{}]


def test_one_of_many_names_may_repeat() -> None:
    found = b"".join(b"name-%d\x01%d\x02" % (at % 100, at) for at in range(101))
    (of_one,) = taken_apart([found])
    assert len(of_one) == 100
    assert of_one["name-0"] == "100"


def test_a_value_is_that_of_its_message() -> None:
    found = [b"a\x011\x02b\x012\x02", b"", b"b\x013", b"a\x014\x02"]
    read = read_pairs(pa.array(found, pa.binary()))
    assert read.of("a").to_pylist() == ["1", None, None, "4"]
    assert read.of("b").to_pylist() == ["2", None, "3", None]
    assert read.of("c").to_pylist() == [None] * 4
    assert read_pairs(pa.array([], pa.binary())).of("a").to_pylist() == []
