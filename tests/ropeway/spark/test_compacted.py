"""A compacted topic as a table of Spark, from its files alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.spark.segments import TierError
from ropeway.storage.sealed.layout import INDEX_SUFFIX
from tests.ropeway.spark.test_compaction_job import (
    NUMBER,
    SENT,
    fill,
    opened,
)
from tests.ropeway.spark.test_tier import ranges, reader, rows
from tests.ropeway.spark.tiers import TOPIC
from tests.storage.sealed.test_version_1 import as_it_was

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, dict[int, bytes]]:
    """The directory of a gateway's compacted records; and what a gateway reads."""
    asyncio.run(fill(tmp_path))
    wanted = asyncio.run(opened(tmp_path, compact_now=True))
    return tmp_path / "compaction", wanted


def test_a_table_has_the_last_message_of_each_key_with_its_offset(
    files: tuple[Path, dict[int, bytes]],
) -> None:
    directory, wanted = files
    one = reader(directory.as_uri())
    ((broker, _, begin, end),) = ranges(one)
    assert (broker, begin, end) == ("compaction", min(wanted), len(SENT))
    found = rows(one)
    assert [offset for _, offset in found] == sorted(wanted)
    for text, offset in found:
        assert text.encode() in wanted[offset]
    some = rows(reader(directory.as_uri(), maxOffsetsPerTask="37"))
    assert sorted(some, key=lambda row: row[1]) == found
    even = rows(reader(directory.as_uri(), tags="even"))
    assert 0 < len(even) < len(found)
    assert set(even) <= set(found)


def test_files_of_version_1_are_read_as_they_are(
    files: tuple[Path, dict[int, bytes]],
) -> None:
    directory, wanted = files
    for index in directory.rglob(f"*{INDEX_SUFFIX}"):
        index.write_bytes(as_it_was(index.read_bytes()))
    assert [offset for _, offset in rows(reader(directory.as_uri()))] == sorted(wanted)


@pytest.mark.parametrize("kind", ["manifest", "*.index", "*.data"])
def test_what_was_altered_is_named(
    files: tuple[Path, dict[int, bytes]], kind: str
) -> None:
    directory, _ = files
    (path,) = (directory / TOPIC / str(NUMBER)).glob(kind)
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(TierError, match=path.name):
        rows(reader(directory.as_uri()))


def test_a_table_is_never_of_two_rounds(
    files: tuple[Path, dict[int, bytes]],
) -> None:
    directory, _ = files
    one = reader(directory.as_uri())
    (part,) = one.partitions()
    for path in directory.rglob("*.data"):
        path.unlink()
    with pytest.raises(TierError, match="a round of compaction has replaced it"):
        list(one.read(part))
