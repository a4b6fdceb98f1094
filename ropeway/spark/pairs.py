"""Properties of many messages taken apart by columns, as `properties.parse` does it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ropeway.gateway.wire import properties
from ropeway.spark.frames import slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAME_END, _VALUE_END = ord(properties.NAME_END), ord(properties.VALUE_END)


class Pairs(NamedTuple):
    """Names and values of messages, one message behind the other."""

    offsets: NDArray[np.int32]
    """Where those of each message begin, and where those of the last one end."""
    names: pa.StringArray
    values: pa.StringArray
    kinds: pa.DictionaryArray
    """The names again, each kind of which is there once."""

    def of(self, name: str) -> pa.StringArray:
        """The value that each message has of a name; null where it has none."""
        found = np.zeros(len(self.offsets) - 1, np.int64)
        is_missing = np.ones(len(found), np.bool_)
        code = self.kinds.dictionary.index(name).as_py()
        if code >= 0:
            at = np.flatnonzero(self.kinds.indices.to_numpy() == code)
            messages = np.searchsorted(self.offsets, at, side="right") - 1
            found[messages], is_missing[messages] = at, False
        return self.values.take(pa.array(found, mask=is_missing))


def read_pairs(found: pa.BinaryArray) -> Pairs:
    """Take properties apart.

    Args:
        found: Those of each message, in wire form.
    """
    return _by_columns(found) or _one_by_one(found)


def _by_columns(found: pa.BinaryArray) -> Pairs | None:
    """The pairs; None where that cannot be done for all messages at once."""
    try:
        found.cast(pa.string())
    except pa.ArrowInvalid:
        # Some of it is no text.
        return None
    data, begins, ends = _places(found)
    name_ends = np.flatnonzero(data == _NAME_END)
    value_ends, pair_begins = _value_ends(data, begins, ends)
    if (
        len(name_ends) != len(value_ends)
        or not ((pair_begins < name_ends) & (name_ends + 1 < value_ends)).all()
    ):
        # A pair without a name or a value, or a value with the end of a name in it.
        return None
    offsets = np.searchsorted(name_ends, np.append(begins, len(data)))
    names = _texts(data, pair_begins, name_ends)
    kinds = names.dictionary_encode()
    if _repeats(kinds, np.diff(offsets)):
        return None
    values = _texts(data, name_ends + 1, value_ends)
    return Pairs(offsets.astype(np.int32), names, values, kinds)


def _places(found: pa.BinaryArray) -> tuple[NDArray[np.uint8], Any, Any]:
    """The bytes of all, and where each begins and ends in them."""
    _, places, data = found.buffers()
    at = np.frombuffer(places, np.int32)[found.offset : found.offset + len(found) + 1]
    whole = np.frombuffer(data or b"", np.uint8)[at[0] : at[-1]]
    at = at - at[0]
    return whole, at[:-1], at[1:]


def _value_ends(
    data: NDArray[np.uint8], begins: NDArray[Any], ends: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where values end, and where their pairs begin.

    The last pair of a message may end with the message, as Java's clients have it.
    """
    value_ends = np.flatnonzero(data == _VALUE_END)
    after = value_ends + 1
    is_open = begins < ends
    is_open[is_open] = data[ends[is_open] - 1] != _VALUE_END
    if is_open.any():
        value_ends = np.concatenate((value_ends, ends[is_open]))
        order = np.argsort(value_ends, kind="stable")
        value_ends = value_ends[order]
        after = np.concatenate((after, ends[is_open]))[order]
    return value_ends, np.concatenate(([0], after[:-1]))[: len(value_ends)]


def _texts(data: Any, begins: NDArray[Any], ends: NDArray[Any]) -> pa.StringArray:
    """What stands between pairs of places, all of which is text."""
    return slices(data, begins, ends).view(pa.string())


def _repeats(names: pa.DictionaryArray, counts: NDArray[Any]) -> bool:
    """Whether a message has a name twice: then the last one counts."""
    kinds = len(names.dictionary)
    of_message = np.repeat(np.arange(len(counts)), counts)
    places = of_message * kinds + names.indices.to_numpy()
    if kinds <= _FEW:
        return bool(len(places)) and int(np.bincount(places).max()) > 1
    return len(np.unique(places)) < len(places)


_FEW = 64
"""Of so many names it is quicker to count for each message how often each is there."""


def _one_by_one(found: pa.BinaryArray) -> Pairs:
    of_each = [
        properties.parse(one.decode(errors="replace")) for one in found.to_pylist()
    ]
    pairs = [*chain.from_iterable(one.items() for one in of_each)]
    names = pa.array([name for name, _ in pairs], pa.string())
    return Pairs(
        np.cumsum([0, *map(len, of_each)]).astype(np.int32),
        names,
        pa.array([value for _, value in pairs], pa.string()),
        names.dictionary_encode(),
    )
