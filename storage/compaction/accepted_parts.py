"""The parts of what was read that a filter accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SIZE_BYTES = 4


def accepted(
    pieces: Sequence[bytes | memoryview],
    accept: Callable[[bytes | memoryview], bool],
) -> list[bytes | memoryview]:
    """Each record that is accepted, by itself."""
    kept: list[bytes | memoryview] = []
    for view in pieces:
        at = 0
        while at < len(view):
            after = at + int.from_bytes(view[at : at + _SIZE_BYTES], "big")
            if accept(view[at:after]):
                kept.append(view[at:after])
            at = after
    return kept
