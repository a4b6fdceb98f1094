"""Every byte of a segment is checked, wherever it is."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from ropeway.storage.sealed.layout import Whose
from ropeway.storage.sealed.verify import Part, WrongPartError, verify
from tests.storage.sealed.segments import EXAMPLES, FLAGS, WHOSE
from tests.storage.tiered.segments import encoded


async def get(
    parts: dict[Part, bytes], part: Part, start: int = 0, size: int | None = None
) -> bytes:
    if part not in parts:
        raise FileNotFoundError(part)
    data = parts[part]
    return data[start:] if size is None else data[start : start + size]


def wrong(parts: dict[Part, bytes], whose: Whose = WHOSE, base: int = 7) -> Part | None:
    """Which part is not what was written."""
    try:
        asyncio.run(verify(partial(get, parts), whose, base))
    except WrongPartError as error:
        return error.part
    return None


@pytest.mark.parametrize("flags", FLAGS)
def test_each_byte_counts_and_none_is_too_many(flags: int) -> None:
    parts: dict[Part, bytes] = {
        "index": EXAMPLES[flags].index,
        "data": EXAMPLES[flags].data,
    }
    assert wrong(parts) is None
    for part, data in [*parts.items()]:
        for at in range(len(data)):
            changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            assert wrong(parts | {part: changed}) == part, at
        for cut in range(len(data)):
            assert wrong(parts | {part: data[:cut]}) == part, cut
        assert wrong(parts | {part: data + b"\0"}) == part
        assert wrong({one: parts[one] for one in parts if one != part}) == part


def test_keys_are_checked_where_there_are_some() -> None:
    made = encoded(["a", "b"], 7)
    assert made.keys is not None
    parts: dict[Part, bytes] = {
        "index": made.index_object,
        "data": b"".join(made.data),
        "keys": made.keys,
    }
    assert wrong(parts) is None
    assert wrong(parts | {"keys": made.keys[:-1] + b"?"}) == "keys"
    del parts["keys"]
    assert wrong(parts) == "keys"


def test_a_segment_under_another_name_is_wrong() -> None:
    parts: dict[Part, bytes] = {"index": EXAMPLES[0].index, "data": EXAMPLES[0].data}
    assert wrong(parts, base=8) == "index"
    assert wrong(parts, Whose("other", 3, 0xABCDEF)) == "index"
