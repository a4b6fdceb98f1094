"""The tail keeps the newest blocks, within its bytes."""

from __future__ import annotations

from ropeway.storage.file.tail import OVERHEAD_BYTES, Tail


def test_the_newest_blocks_stay_and_the_oldest_go() -> None:
    tail = Tail(8 * (100 + OVERHEAD_BYTES))
    for number in range(20):
        tail.add(number * 1000, bytes([number]) * 100)
    assert tail.get(19_010, 5) == bytes([19]) * 5
    assert tail.get(0, 5) is None
    kept = [number for number in range(20) if tail.get(number * 1000, 100) is not None]
    assert kept == list(range(20 - len(kept), 20))
    assert 7 <= len(kept) <= 8


def test_blocks_of_any_size_stay_within_the_limit() -> None:
    tail = Tail(1000)
    for number in range(3):
        tail.add(number * 1000, bytes(600))
        kept = [at for at in range(3) if tail.get(at * 1000, 600) is not None]
        assert kept == [number]


def test_bytes_outside_of_the_kept_blocks_are_not_there() -> None:
    tail = Tail(10_000)
    tail.add(1000, b"abcdef")
    assert tail.get(1002, 4) == b"cdef"
    for position, size in [(999, 1), (1002, 5), (1006, 1), (2000, 1)]:
        assert tail.get(position, size) is None
