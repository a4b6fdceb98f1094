"""What every binary format begins with: a magic word, a checksum, a version.

     0  magic    4s
     4  crc32    u32  of every byte from 8 on, as far as the format says
     8  version  u16

Little-endian. `docs/architecture/formats.md` lists the formats.
"""

from __future__ import annotations

from zlib import crc32

CHECKED_FROM = 8
"""The checksum covers what follows it."""


def checked(header: bytes, behind: bytes = b"") -> bytes:
    """A header with its checksum in place.

    Args:
        header: With anything where the checksum goes.
        behind: What follows the header and is covered as well; it is not returned.
    """
    checksum = crc32(behind, crc32(header[CHECKED_FROM:]))
    return header[:4] + checksum.to_bytes(4, "little") + header[CHECKED_FROM:]
