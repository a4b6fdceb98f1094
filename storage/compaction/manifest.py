"""The file `manifest` of a partition: which files its compacted records are in.

It is replaced as a whole, and that is the swap: before, the old files count, after
it the new ones. Files that it does not name are left-overs, and are deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
from msgspec import Struct

from ropeway.common.versions import newer
from ropeway.storage.api import LogDamagedError, LogError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "manifest"
VERSION = 2
"""Of it, and of the files that it names; see `storage.sealed`."""


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
    identity: int = 0
    """The partition's, as `storage.replication.Followed` has it; 0: not known."""


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
        return parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None


def parse(line: bytes, where: str) -> Manifest:
    """Read the file's bytes; raises as `load`.

    Args:
        line: All of them.
        where: Its name, for messages.
    """
    checksum, _, data = line.removesuffix(b"\n").partition(b" ")
    if checksum != b"%08x" % crc32(data):
        raise LogDamagedError(
            f"{where}: not what was written; restore it, or delete the directory to do "
            "without what was compacted"
        )
    fields = msgspec.json.decode(data)
    if fields["version"] > VERSION:
        raise LogError(newer(where, fields["version"], VERSION))
    return msgspec.convert(fields, Manifest)
