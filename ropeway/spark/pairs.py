"""Properties of many messages taken apart by columns, as `properties.parse` does it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ropeway.gateway.wire import properties

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAME_END, _VALUE_END = properties.NAME_END.encode(), properties.VALUE_END.encode()

_FEW = 64
"""Of so many names it is quicker to count for each message how often each is there."""


class Pairs(NamedTuple):
    """Names and values of messages, one message behind the other."""

    offsets: pa.Int32Array
    """Where those of each message begin, and where those of the last one end."""
    names: pa.StringArray
    values: pa.StringArray


def read_pairs(found: pa.BinaryArray) -> Pairs:
    """Take properties apart.

    Args:
        found: Those of each message, in wire form.
    """
    return _by_columns(found) or _one_by_one(found)


def _by_columns(found: pa.BinaryArray) -> Pairs | None:
    """The pairs; None where that cannot be done for all messages at once."""
    texts = pc.split_pattern(found, _VALUE_END)
    halves = pc.split_pattern(texts.flatten(), _NAME_END, max_splits=1)
    of_message = pc.list_parent_indices(texts).to_numpy()
    is_pair = pc.equal(pc.list_value_length(halves), 2)
    both = halves.filter(is_pair).flatten()
    every = np.arange(0, len(both), 2)
    raw_names, raw_values = both.take(pa.array(every)), both.take(pa.array(every + 1))
    of_message = of_message[is_pair.to_numpy(zero_copy_only=False)]
    try:
        names, values = raw_names.cast(pa.string()), raw_values.cast(pa.string())
    except pa.ArrowInvalid:
        # Some of it is no text.
        return None
    lengths = pc.min_element_wise(pc.binary_length(names), pc.binary_length(values))
    if len(names) and pc.min(lengths).as_py() == 0:
        return None
    if _repeats(names, of_message):
        return None
    counts = np.bincount(of_message, minlength=len(found))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return Pairs(pa.array(offsets), names, values)


def _repeats(names: pa.StringArray, of_message: NDArray[Any]) -> bool:
    """Whether a message has a name twice: then the last one counts."""
    coded = names.dictionary_encode()
    kinds = len(coded.dictionary)
    places = of_message * kinds + coded.indices.to_numpy()
    if kinds <= _FEW:
        return bool(len(places)) and int(np.bincount(places).max()) > 1
    return len(np.unique(places)) < len(places)


def _one_by_one(found: pa.BinaryArray) -> Pairs:
    of_each = [
        properties.parse(one.decode(errors="replace")) for one in found.to_pylist()
    ]
    offsets = np.cumsum([0, *map(len, of_each)]).astype(np.int32)
    pairs = [*chain.from_iterable(one.items() for one in of_each)]
    return Pairs(
        pa.array(offsets),
        pa.array([name for name, _ in pairs], pa.string()),
        pa.array([value for _, value in pairs], pa.string()),
    )
