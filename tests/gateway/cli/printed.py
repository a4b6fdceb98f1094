"""Holding what commands print as JSON against what `ropeway schema` says of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.cli.schema import shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

SHAPES = shapes()


def valid(words: Sequence[str], stdout: str) -> None:
    """Check the JSON of a command line; it has the members of its type and no others.

    Raises:
        AssertionError: It has none of the types that the schema has.
    """
    shape = SHAPES[command_of(words)]
    lines = stdout.splitlines()
    assert shape.is_lines or len(lines) <= 1, stdout
    for line in lines:
        assert any(_is(line, kind) for kind in shape.types), (words, line)


def command_of(words: Sequence[str]) -> str:
    """The command of a command line: the words that are one together."""
    for length in range(len(words), 0, -1):
        for start in range(len(words) - length + 1):
            name = " ".join(words[start : start + length])
            if name in SHAPES:
                return name
    raise AssertionError(f"{words} is no command that prints JSON")


def _is(line: str, kind: object) -> bool:
    try:
        found = msgspec.json.decode(line, type=kind)
    except msgspec.ValidationError:
        return False
    # What no type knows is left out as it is read.
    return json.loads(msgspec.json.encode(found)) == json.loads(line)
