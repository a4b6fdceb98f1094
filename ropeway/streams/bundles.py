"""Bundles: the records that a part of a batch has of one key, as one row.

Spark takes long for each row that it hands to a stateful operator in Python, and for
each that comes back. So what crosses an exchange is a row a key; each record in it
still counts, and fires, by itself.
"""

from __future__ import annotations

import pickle
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ropeway.streams.records import MICROSECONDS, TIME, dump_key, dump_value, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ropeway.streams.records import Record

Items = list[tuple[Any, int]]
"""Values as `packed` has them, with their times."""

_TIME = itemgetter(1)
_UNCHANGING = frozenset({str, int, float, bytes, bool, type(None)})


class Packed(NamedTuple):
    """A value that may change behind its bundle, so that it is pickled at once."""

    data: bytes


def packed(value: Any) -> Any:
    """A value as it is put into a bundle."""
    return value if type(value) in _UNCHANGING else Packed(dump_value(value))


def unpacked(value: Any) -> Any:
    """The value again."""
    return load(value.data) if type(value) is Packed else value


def dump(items: Items) -> bytes:
    """A bundle's bytes."""
    return pickle.dumps(items, protocol=5)


def in_order(bundles: Iterable[bytes]) -> Iterator[tuple[Any, int]]:
    """Values and times of several bundles of a key, by time.

    Args:
        bundles: In the order in which they came, which is kept among equal times.
    """
    items = [item for bundle in bundles for item in load(bundle)]
    items.sort(key=_TIME)
    return ((unpacked(value), time_ms) for value, time_ms in items)


def to_bundles(records: list[Record]) -> pa.RecordBatch:
    """Records for an operator that takes bundles: a row a key."""
    bundles: dict[bytes | None, Items] = {}
    dumped: dict[str, bytes] = {}
    for key, value, time_ms in records:
        # Text alone: other keys may be equal and yet differ, like 1 and 1.0.
        name = dumped.get(key) if type(key) is str else None
        if name is None and key is not None:
            name = dump_key(key)
            if type(key) is str:
                dumped[key] = name
        bundles.setdefault(name, []).append((packed(value), time_ms))
    times = [items[0][1] * MICROSECONDS for items in bundles.values()]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(bundles, pa.binary()),
            pa.array(map(dump, bundles.values()), pa.binary()),
            pa.array(times, TIME),
        ],
        names=["key", "value", "ts"],
    )


def from_bundles(batch: pa.RecordBatch) -> Iterator[Record]:
    """Records as an operator left them that gives bundles."""
    keys, bundles = (batch.column(name).to_pylist() for name in ("key", "value"))
    for dumped, bundle in zip(keys, bundles, strict=True):
        key = None if dumped is None else load(dumped)
        for value, time_ms in load(bundle):
            yield key, unpacked(value), time_ms
