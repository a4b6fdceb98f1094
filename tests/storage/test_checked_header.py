"""The checksum of a header: over what follows it, and what stands behind."""

from zlib import crc32

from ropeway.storage.checked_header import CHECKED_FROM, checked


def test_the_checksum_covers_all_but_the_magic_word_and_itself() -> None:
    header = b"RWYX" + bytes(4) + b"\x01\x00 more"
    found = checked(header, b"behind")
    assert found[:4] == b"RWYX"
    assert found[CHECKED_FROM:] == header[CHECKED_FROM:]
    wanted = crc32(header[CHECKED_FROM:] + b"behind")
    assert int.from_bytes(found[4:8], "little") == wanted
    assert checked(found, b"behind") == found
