"""The file `manifest` of a partition: which files its compacted records are in.

It is replaced as a whole, and that is the swap: before, the old files count, after
it the new ones. Files that it does not name are left-overs, and are deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
from msgspec import Struct

from ropeway.storage.api import LogDamagedError, LogError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "manifest"
VERSION = 1


class Manifest(Struct, frozen=True):
    """What counts of a partition's directory."""

    topic: str
    number: int
    clean_end: int = 0
    """Below this offset the files have all that is left."""
    generation: int = 0
    """Larger with each swap, so that no file's name is used twice."""
    files: tuple[str, ...] = ()
    """Names without their ends, by offset."""
    version: int = VERSION


def dump(manifest: Manifest) -> bytes:
    """The file's bytes: the crc32 of the JSON in 8 digits, a space, the JSON."""
    data = msgspec.json.encode(manifest)
    return b"%08x %s\n" % (crc32(data), data)


def load(path: Path) -> Manifest | None:
    """Read the file; None where there is none.

    Raises:
        LogDamagedError: It is not what was written.
        LogError: A newer program made it.
    """
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    checksum, _, data = line.removesuffix(b"\n").partition(b" ")
    if checksum != b"%08x" % crc32(data):
        raise LogDamagedError(
            f"{path}: not what was written; restore it, or delete the directory to do "
            "without what was compacted"
        )
    fields = msgspec.json.decode(data)
    if fields["version"] > VERSION:
        raise LogError(
            f"{path} has format {fields['version']}; "
            f"this program reads up to {VERSION}: use a newer one"
        )
    return msgspec.convert(fields, Manifest)
