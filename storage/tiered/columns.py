"""Entries and keys of records as a segment has them: a column each, keys in runs.

All that looks at every record on its way into the tier is here.
"""

from __future__ import annotations

from array import array

from ropeway.common.native import count_of
from ropeway.storage.replication import ENTRY, KEY_BYTES
from ropeway.storage.tiered.compiled import may_be_compiled

_WORDS = ENTRY.size // 4
_SIZE, _TAG, _TIME = 1, 2, 3
"""Words of an entry; the time has two."""
_SIZE_BYTES = 4
_LOW = 0xFFFFFFFF


@may_be_compiled
def columns_of(
    entries: bytes | bytearray,
) -> tuple[bytes, bytes, bytes, int, int]:
    """Store times, sizes and tag hashes; the smallest and the largest store time.

    Args:
        entries: `storage.replication.ENTRY` of each record; at least one.

    Raises:
        ValueError: There is none, or one is not whole.
    """
    count_of(entries, ENTRY.size, least=1)
    words = array("I", bytes(entries))
    times = array("I", bytes(8 * (len(words) // _WORDS)))
    times[0::2] = words[_TIME::_WORDS]
    times[1::2] = words[_TIME + 1 :: _WORDS]
    at = memoryview(times).cast("B").cast("q")
    return (
        times.tobytes(),
        words[_SIZE::_WORDS].tobytes(),
        words[_TAG::_WORDS].tobytes(),
        min(at),
        max(at),
    )


@may_be_compiled
def cuts_of(sizes: bytes, most: int) -> list[tuple[int, int]]:
    """Blocks of neighbours: how many records and bytes each has.

    Args:
        sizes: Of the records, 32 bits each.
        most: Bytes of a block, but where one record has more.

    Raises:
        ValueError: A size is not whole.
    """
    count_of(sizes, _SIZE_BYTES)
    cuts: list[tuple[int, int]] = []
    records = used = 0
    for size in memoryview(sizes).cast("I"):
        if records and used + size > most:
            cuts.append((records, used))
            records = used = 0
        records, used = records + 1, used + size
    if records:
        cuts.append((records, used))
    return cuts


@may_be_compiled
def in_runs(keys: bytes | bytearray | memoryview, base: int, a_run: int) -> bytes:
    """Keys in ascending runs, as key objects have them.

    Args:
        keys: `hash << 32 | number` each, 64 bits.
        base: Is taken from each number, modulo 2^32.
        a_run: Keys of a run; the last one may have fewer.

    Raises:
        ValueError: A key is not whole, or a run would have none.
    """
    numbers = memoryview(keys).cast("B")
    count_of(numbers, KEY_BYTES)
    if a_run < 1:
        raise ValueError("a run has at least one key")
    numbers = numbers.cast("Q")
    found = array("Q")
    for low in range(0, len(numbers), a_run):
        found.extend(
            sorted(
                key & ~_LOW | (key & _LOW) - base & _LOW
                for key in numbers[low : low + a_run]
            )
        )
    return found.tobytes()
