"""The tail keeps the newest packs of all partitions, within its limit."""

from __future__ import annotations

from ropeway.storage.pulsar.tail import OVERHEAD_BYTES, Cached, Tail


def test_packs_are_found_by_any_offset_they_have() -> None:
    tail, cached = Tail(1 << 20), Cached()
    for base in (10, 15, 30):
        tail.add(cached, base, b"%d" % base)
    assert cached.find(9) is None
    found = [
        cached.get(at)
        for at in map(cached.find, (10, 14, 15, 29, 30))
        if at is not None
    ]
    assert found == [b"10", b"10", b"15", b"15", b"30"]
    assert cached.get(3) is None


def test_the_oldest_go_first_whosever_they_are() -> None:
    size = 100
    tail = Tail(40 * (size + OVERHEAD_BYTES))
    one, two = Cached(), Cached()
    for base in range(30):
        tail.add(one, base, b"x" * size)
    for base in range(30):
        tail.add(two, base, b"x" * size)
    assert one.find(5) is None
    assert one.find(29) is not None
    assert two.find(0) is not None


def test_a_pack_beyond_the_limit_is_not_kept() -> None:
    tail, cached = Tail(100), Cached()
    tail.add(cached, 0, b"x" * 1000)
    assert cached.find(0) is None
    tail.add(cached, 1, b"x")
    assert cached.find(1) is None
