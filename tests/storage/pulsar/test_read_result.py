"""One answer from many packs obeys a read's limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import MAX_LOOKS, Filter
from ropeway.storage.pulsar.pack import Pack, encode, peel
from ropeway.storage.pulsar.read_result import Gathering

Tagged = list[tuple[bytes, int]]


def packs(groups: list[Tagged]) -> list[Pack]:
    made = []
    base = 0
    for group in groups:
        records = [(data, tag, ()) for data, tag in group]
        made.append(peel(encode([(records, 1, None, 0)], base)))
        base += len(group)
    return made


@given(
    st.lists(
        st.lists(
            st.tuples(st.binary(max_size=9), st.integers(0, 2)), min_size=1, max_size=5
        ),
        min_size=1,
        max_size=5,
    ),
    st.data(),
)
def test_it_finds_what_a_plain_loop_finds(
    groups: list[Tagged], draw: st.DataObject
) -> None:
    flat = [record for group in groups for record in group]
    offset = draw.draw(st.integers(0, len(flat) - 1))
    end = draw.draw(st.integers(offset + 1, len(flat)))
    max_count = draw.draw(st.integers(1, 8))
    max_bytes = draw.draw(st.integers(0, 40))
    tags = draw.draw(st.none() | st.sets(st.integers(0, 2)))
    odd = draw.draw(st.booleans())
    wanted = None
    if tags is not None or odd:
        accept = (lambda data: len(data) % 2 == 1) if odd else None
        wanted = Filter(tag_hashes=tags, accept=accept)

    gathering = Gathering(offset, end, max_count, max_bytes, wanted)
    for pack in packs(groups):
        if pack.end > offset and not gathering.add(pack):
            break
    chunk = gathering.chunk()

    expected: list[bytes] = []
    total, at = 0, offset
    while at < end and len(expected) < max_count:
        data, tag = flat[at]
        if (tags is None or tag in tags) and (not odd or len(data) % 2 == 1):
            if expected and total + len(data) > max_bytes:
                break
            expected.append(data)
            total += len(data)
        at += 1
    assert b"".join(chunk.data) == b"".join(expected)
    assert chunk.records == len(expected)
    assert offset < chunk.next_offset <= at


def test_a_filter_looks_at_a_bounded_number() -> None:
    (pack,) = packs([[(b"x", 0)] * (MAX_LOOKS + 5)])
    gathering = Gathering(0, pack.end, 32, 1000, Filter(tag_hashes={9}))
    assert not gathering.add(pack)
    assert gathering.chunk().next_offset == MAX_LOOKS


def test_a_gap_between_packs_is_stepped_over():
    """Packs of native clients' topics may have one."""
    before, behind = (
        peel(encode([([(text, 0, ())], 1, None, 0)], base))
        for base, text in ((3, b"three"), (7, b"seven"))
    )
    gathering = Gathering(5, 8, 10, 1000, None)
    assert gathering.add(before), "the pack that was found before the gap"
    assert gathering.offset == 5
    assert not gathering.add(behind)
    assert gathering.chunk().data == [b"seven"]
    assert gathering.chunk().next_offset == 8
