"""The standard input: read as it comes, without a thread that Ctrl-C would wait for.

What is not read yet stays in the file, so that a line with a secret may come first.
"""

from __future__ import annotations

import asyncio
import sys
from io import UnsupportedOperation
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_READ_BYTES = 64 * 1024


def read_line() -> bytes:
    """Read one line and nothing behind it; empty at the end."""
    return _unbuffered().readline()


async def parts(
    at_once: int, delimiter: bytes | None = None
) -> AsyncIterator[list[bytes]]:
    """Read lists of so many parts, without their ends; the last may have fewer.

    Args:
        at_once: How many parts each list has.
        delimiter: What stands between parts, which are kept as they are. By default
            parts are lines, without empty ones.
    """
    found: list[bytes] = []
    rest = b""
    while data := await _read():
        *whole, rest = (rest + data).split(b"\n" if delimiter is None else delimiter)
        found += whole if delimiter else _lines(whole)
        while len(found) >= at_once:
            yield found[:at_once]
            del found[:at_once]
    if rest:
        found += [rest] if delimiter else _lines([rest])
    if found:
        yield found


async def everything() -> bytes:
    """Read all that comes."""
    found = []
    while data := await _read():
        found.append(data)
    return b"".join(found)


def _lines(whole: list[bytes]) -> list[bytes]:
    return list(filter(None, (line.rstrip(b"\r") for line in whole)))


def _unbuffered() -> IO[bytes]:
    return cast("IO[bytes]", getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))


async def _read() -> bytes:
    """Wait until there is something, and return it; empty at the end."""
    source = _unbuffered()
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(source, readable.set)
    except (PermissionError, UnsupportedOperation, ValueError):
        # A file on a disk, or none at all: nobody waits for it.
        return source.read(_READ_BYTES)
    try:
        await readable.wait()
        return source.read(_READ_BYTES)
    finally:
        loop.remove_reader(source)
