"""The map of offsets: against a dictionary, and its bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.compaction.bits import Bits
from ropeway.storage.compaction.offset_map import DIGEST_BYTES, OffsetMap, digest
from ropeway.storage.compaction_api import KEYED, ROW

KEYS = st.lists(st.integers(0, 40) | st.none(), max_size=120)


def row(key: int | None) -> bytes:
    if key is None:
        return ROW.pack(9, 0, 0, 0, bytes(16))
    return ROW.pack(9, 0, 0, KEYED, digest(b"%d" % key))


def keys_of(keys: list[int | None], due_ms: int = 0) -> tuple[bytes, bytes]:
    """When records are due, and the digests of their keys."""
    digests = [bytes(16) if key is None else digest(b"%d" % key) for key in keys]
    return due_ms.to_bytes(8, "little") * len(keys), b"".join(digests)


@given(KEYS, st.integers(1, 7))
def test_it_is_a_dictionary_of_digests(keys: list[int | None], at_once: int) -> None:
    offsets, stays = OffsetMap(1 << 16, 41), Bits(100)
    known = {key: 100 + at for at, key in enumerate(keys) if key is not None}
    keyless = [100 + at for at, key in enumerate(keys) if key is None]
    for at in range(0, len(keys), at_once):
        some = keys[at : at + at_once]
        assert offsets.note(b"".join(map(row, some)), 100 + at, stays) == len(some)
    assert offsets.count == len(known)
    assert stays.within(100, 300) == keyless
    offsets.mark(0, offsets.slots, stays, 100 + len(keys))
    assert stays.within(100, 300) == sorted([*known.values(), *keyless])
    wanted = [key not in known for key in range(50)] + [True]
    assert list(offsets.staying(*keys_of([*range(50), None]), 5)) == wanted
    assert offsets.staying(*keys_of([49], 5), 5) == b"\0"
    assert offsets.staying(*keys_of([49], 6), 5) == b"\1"


def test_it_takes_no_more_memory_than_it_may_and_needs() -> None:
    assert OffsetMap(1 << 20, 1 << 30).size_bytes <= 1 << 20
    assert OffsetMap(1 << 20, 100).size_bytes < 1 << 12
    assert OffsetMap(1 << 20, 1 << 30).slots * 24 > 1_000_000


def test_it_is_full_before_looking_for_a_place_takes_long() -> None:
    offsets, stays = OffsetMap(1 << 12, 1 << 20), Bits(0)
    rows = b"".join(map(row, range(1000)))
    taken = offsets.note(rows, 0, stays)
    assert offsets.is_full
    assert 0.7 * offsets.slots < taken < 0.8 * offsets.slots
    assert offsets.note(rows, 0, stays) == 0
    left = offsets.staying(*keys_of([*range(1000)]), 0)
    assert list(left) == [key >= taken for key in range(1000)]


def test_a_digest_has_one_size_and_tells_keys_apart() -> None:
    digests = {digest(key) for key in (b"", b"a", b"a" * 10_000, b"b")}
    assert {len(one) for one in digests} == {DIGEST_BYTES}
    assert len(digests) == 4
