"""Rows as entries of a batch in wire form, column by column.

Arrow joins the parts of each entry, and what it gives is one buffer with one entry
behind the other: any slice of it between two entries is the body of a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.message import MAX_PROPERTIES_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_BYTES, _TEXT = pa.large_binary(), pa.large_string()
_PROPERTIES = {
    "tag": names.TAGS,
    "key": names.KEYS,
    "sharding_key": names.SHARDING_KEY,
}
_ENDS = f"[{names.NAME_END}{names.VALUE_END}]"
_ENDS_ALLOWED = "text without 0x01 and 0x02"
_FRONT_BYTES, _MIN_BYTES = 20, 22
_KEY_BYTES = 8


class Entries(NamedTuple):
    """Entries of a batch, one behind the other."""

    data: memoryview
    ends: NDArray[np.int64]
    """Where each begins, and where the last one ends."""


class Columns:
    """The columns of rows.

    Args:
        batch: The rows.
        before: How many rows of the task stand in front of them.
    """

    def __init__(self, batch: pa.RecordBatch, before: int) -> None:
        self.count = batch.num_rows
        self.before = before
        self._columns = dict(zip(batch.schema.names, batch.columns, strict=True))

    def column(self, name: str) -> pa.Array | None:
        """A column; None where none of the rows has it."""
        found = self._columns.get(name)
        return None if found is None or found.null_count == len(found) else found

    def check(self, name: str, is_wrong: pa.Array, allowed: str) -> None:
        """Refuse a row whose column is wrong, where there is one.

        Raises:
            ValueError: Says which.
        """
        at = pc.index(is_wrong, pa.scalar(True)).as_py()
        if at >= 0:
            came = self._columns[name][at].as_py()
            shown = str(came) if isinstance(came, int) else repr(came)
            self.refuse(name, at, shown, allowed)

    def refuse(self, name: str, at: int, came: str, allowed: str) -> NoReturn:
        """Refuse a row.

        Raises:
            ValueError: Says which column of which row of the task.
        """
        raise ValueError(
            f"column {name!r} of row {self.before + at} of this task is {came:.200}; "
            f"allowed: {allowed}"
        )

    def bodies(self, longest_bytes: int) -> pa.Array:
        """What the messages have: a null of a row with a key deletes it, and is empty.

        Raises:
            ValueError: One is empty, or too long.
        """
        found = self._columns["value"].cast(_BYTES)
        sizes = pc.binary_length(found)
        is_wrong = pc.equal(pc.fill_null(sizes, 0), 0)
        keys = self.column("key")
        if keys is not None:
            deletes = pc.and_(
                pc.is_null(found),
                pc.fill_null(pc.greater(pc.binary_length(keys), 0), False),
            )
            is_wrong = pc.and_not(is_wrong, deletes)
        self.check("value", is_wrong, "1 byte or more, or null for a key to go")
        at = pc.index(pc.greater(sizes, longest_bytes), pa.scalar(True)).as_py()
        if at >= 0:
            came = f"{sizes[at].as_py()} bytes"
            self.refuse("value", at, came, f"up to {longest_bytes} bytes")
        return pc.fill_null(found, b"")

    def delays(self) -> NDArray[np.int64] | None:
        """How long each waits, in milliseconds; None where none does.

        Raises:
            ValueError: One is negative.
        """
        found = self.column("delay_ms")
        if found is None:
            return None
        self.check("delay_ms", pc.less(found, 0), "from 0")
        return numbers(found, 0)

    def _texts(self, prefix: str) -> pa.Array:
        """Their properties."""
        keys = _unique_keys(prefix, self.before, self.count)
        for column in ("properties", "headers"):
            if (own := self.column(column)) is not None:
                return self._one_by_one(column, own, keys)
        parts: list[Any] = [f"{names.WAIT}{names.NAME_END}true{names.VALUE_END}"]
        for column, name in _PROPERTIES.items():
            if (values := self.column(column)) is not None:
                is_wrong = pc.match_substring_regex(values, _ENDS)
                self.check(column, is_wrong, _ENDS_ALLOWED)
                parts.append(_pair(name, values))
        delays = self.column("delay_ms")
        if delays is not None:
            is_delayed = pc.greater(delays, 0)
            values = pc.if_else(is_delayed, delays.cast(pa.string()), None)
            parts.append(_pair(names.TIMER_DELAY_MS, values))
        parts.append(_pair(names.UNIQ_KEY, keys))
        return _joined(parts, _TEXT)

    def _one_by_one(self, own_column: str, own: pa.Array, keys: pa.Array) -> pa.Array:
        """The same with properties of each row's own, which columns may replace."""
        texts = []
        columns = [
            (name, values.to_pylist())
            for column, name in (
                *_PROPERTIES.items(),
                ("delay_ms", names.TIMER_DELAY_MS),
            )
            if (values := self.column(column)) is not None
        ]
        for at, (pairs, key) in enumerate(
            zip(own.to_pylist(), keys.to_pylist(), strict=True)
        ):
            found = {names.WAIT: "true"}
            found |= self._own(own_column, at, pairs)
            for name, values in columns:
                if (value := values[at]) is None:
                    continue
                if name != names.TIMER_DELAY_MS:
                    found[name] = value
                elif value:
                    found[name] = str(value)
            found.setdefault(names.UNIQ_KEY, key)
            text = names.dump(found)
            ends = text.count(names.NAME_END), text.count(names.VALUE_END)
            if ends != (len(found), len(found)):
                self.refuse(own_column, at, repr(found), _ENDS_ALLOWED)
            texts.append(text)
        return pa.array(texts, _TEXT)

    def _own(self, column: str, at: int, pairs: Any) -> dict[str, str]:
        """What a row's map of properties has, or its headers; of a name, the last."""
        if column != "headers":
            return {name: value for name, value in pairs or () if value is not None}
        found = {}
        for one in pairs or ():
            if one is None or one["value"] is None:
                continue
            try:
                found[one["key"]] = one["value"].decode()
            except UnicodeDecodeError:
                self.refuse(column, at, repr(one), "values of UTF-8")
        return found

    def entries(self, bodies: pa.Array, prefix: str) -> pa.Array:
        """The rows as entries of a batch.

        Args:
            bodies: What `bodies` gave.
            prefix: How the messages' unique keys begin; their rows' numbers follow.

        Raises:
            ValueError: Properties are no text that a message can have.
        """
        texts = self._texts(prefix).cast(_BYTES)
        body_sizes = numbers(pc.binary_length(bodies))
        text_sizes = numbers(pc.binary_length(texts))
        at = int(text_sizes.argmax())
        if text_sizes[at] > MAX_PROPERTIES_BYTES:
            came = f"{text_sizes[at]} bytes in wire form"
            allowed = f"up to {MAX_PROPERTIES_BYTES} bytes"
            self.refuse("properties", at, came, allowed)
        fronts = np.zeros((self.count, 5), ">i4")
        fronts[:, 0] = _MIN_BYTES + body_sizes + text_sizes
        fronts[:, 4] = body_sizes
        return _joined(
            [
                _fixed(fronts.tobytes(), _FRONT_BYTES),
                bodies,
                _fixed(text_sizes.astype(">i2").tobytes(), 2),
                texts,
            ],
            _BYTES,
        )


def as_one(entries: pa.Array) -> Entries:
    """Entries as they stand in memory."""
    _, ends, data = entries.buffers()
    places = np.frombuffer(ends, np.int64)[entries.offset :][: len(entries) + 1]
    return Entries(memoryview(data) if data else memoryview(b""), places)


def _pair(name: str, values: pa.Array) -> pa.Array:
    """Properties of one name; null where its value is."""
    parts = [f"{name}{names.NAME_END}", values.cast(_TEXT), names.VALUE_END]
    return pc.binary_join_element_wise(
        *(pa.scalar(one, _TEXT) if isinstance(one, str) else one for one in parts),
        pa.scalar("", _TEXT),
    )


def _joined(parts: Iterable[Any], kind: pa.DataType) -> pa.Array:
    """The parts of each row in one; nulls are left out."""
    empty = "" if kind == _TEXT else b""
    return pc.binary_join_element_wise(
        *(pa.scalar(one, kind) if isinstance(one, str) else one for one in parts),
        pa.scalar(empty, kind),
        null_handling="replace",
        null_replacement=empty,
    )


def _unique_keys(prefix: str, first: int, count: int) -> pa.Array:
    """Keys of rows from one on: their numbers behind the prefix, as eight digits."""
    numbers = np.arange(first, first + count).astype(">u4")
    digits = _fixed(numbers.tobytes().hex().upper().encode(), _KEY_BYTES)
    return _joined([prefix, digits.cast(_TEXT)], _TEXT)


def _fixed(data: bytes, size: int) -> pa.Array:
    """Values of one size, one behind the other in some bytes."""
    found = pa.Array.from_buffers(
        pa.binary(size), len(data) // size, [None, pa.py_buffer(data)]
    )
    return found.cast(_BYTES)


def numbers(found: pa.Array, otherwise: int = 0) -> NDArray[np.int64]:
    """Numbers, with another one for nulls."""
    numbers: NDArray[np.int64] = pc.fill_null(
        found.cast(pa.int64()), otherwise
    ).to_numpy(zero_copy_only=False)
    return numbers
