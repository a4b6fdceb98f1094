"""What waits becomes a segment with the same records, tags, times and keys."""

from __future__ import annotations

from itertools import chain
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import Whose, decode_keys, records_with
from ropeway.storage.tiered import pending_segment as pendings
from ropeway.storage.tiered.pending_segment import Pending
from tests.storage.tiered.segments import IDENTITY, NUMBER, TOPIC, run


def hash_of(key: str) -> int:
    return crc32(key.encode(), crc32(TOPIC.encode()))


@given(
    st.lists(
        st.lists(st.text(max_size=40), min_size=1, max_size=8), min_size=1, max_size=6
    ),
    st.sampled_from(["none", "zstd"]),
    st.integers(20, 200),
)
def test_a_segment_has_what_waited_for_it(runs, compression, block_bytes):
    texts = [text for some in runs for text in some]
    pending = None
    for number, some in enumerate(runs):
        made = run(some, 5 + (pending.records if pending else 0))
        pending = pending or Pending(made, 0, 0.0)
        pending.add(made, 10 + number)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pendings, "BLOCK_BYTES", block_bytes)
        found = pending.encode(compression)
    index = decode_index(found.index_object)
    about = index.about
    assert about == found.about
    assert about.whose == Whose(TOPIC, NUMBER, IDENTITY)
    assert (about.base_offset, about.end) == (5, 5 + len(texts))
    assert (about.written_ms, about.least_ms) == (10 + len(runs) - 1, 1000)
    data = b"".join(found.data)
    got = []
    for number in range(index.blocks):
        place, size = index.data_at(number, number + 1)
        block = index.open_block(number, data[place : place + size])
        places = block.places
        got += [
            bytes(block.data[places[at] + 4 : places[at + 1]]).decode()
            for at in range(block.columns.records)
        ]
        assert block.columns.tags.tolist() == [
            -len(text) for text in got[-block.columns.records :]
        ]
        raw = len(block.data)
        assert raw <= max(block_bytes, 4 + 4 * 40) or block.columns.records == 1
    assert got == texts
    keys = decode_keys(found.keys, about)
    for number, text in enumerate(texts):
        with_key = records_with(keys, hash_of(text))
        assert number in chain.from_iterable(with_key)
    assert found.size == len(data) + len(found.keys) + len(found.index_object)


def test_without_keys_there_is_no_object_for_them():
    made = run(["a"])._replace(keys=b"")
    pending = Pending(made, 0, 0.0)
    pending.add(made, 1)
    assert pending.encode("none").keys is None
