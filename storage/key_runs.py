"""Keys of records in ascending runs, as index files and key objects have them."""

from __future__ import annotations

from array import array

from ropeway.common.native import count_of
from ropeway.storage.replication import KEY_BYTES

_LOW = 0xFFFFFFFF


def in_runs(
    keys: bytes | bytearray | memoryview | array[int], base: int, a_run: int
) -> bytes:
    """Sort keys within runs, which follow each other.

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
        run = numbers[low : low + a_run].tolist()
        if base:
            run = [key & ~_LOW | (key & _LOW) - base & _LOW for key in run]
        run.sort()
        found.extend(run)
    return found.tobytes()
