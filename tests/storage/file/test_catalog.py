"""The journal of topics: ordinals are never given twice, floors outlive restarts."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from structlog.testing import capture_logs

from ropeway.storage.api import LogDamagedError, LogUnavailableError
from ropeway.storage.file import catalog as catalogs
from ropeway.storage.file.catalog import Catalog, load, open_catalog

if TYPE_CHECKING:
    from pathlib import Path


def opened(directory: Path, *, skip: bool = False) -> Catalog:
    return open_catalog(directory, 77, skip=skip)


def test_topics_ordinals_and_floors_outlive_a_restart(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    catalog.create("a", [3, 1])
    catalog.create("b", [0])
    catalog.create("a", [1, 2])
    assert catalog.topics == {"a": {1: 0, 3: 1, 2: 3}, "b": {0: 2}}
    catalog.set_ends({0: 50, 2: 60})
    catalog.trim({0: 40, 2: 50})
    catalog.delete("b")
    catalog.sync()
    catalog.close()
    for _ in range(2):
        again = opened(tmp_path)
        assert again.log_id == 77
        assert again.topics == {"a": {1: 0, 3: 1, 2: 3}}
        assert (again.ends, again.trimmed) == ({0: 50}, {0: 40})
        again.close()
    again = opened(tmp_path)
    again.create("b", [0])
    assert again.topics["b"] == {0: 4}
    again.close()


def test_opening_leaves_out_what_no_longer_counts(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    for number in range(50):
        catalog.create(f"topic-{number}", range(8))
        catalog.delete(f"topic-{number}")
    catalog.close()
    before = (tmp_path / "partitions").stat().st_size
    opened(tmp_path).close()
    assert (tmp_path / "partitions").stat().st_size * 50 < before
    known = load(tmp_path / "partitions", skip=False)
    assert known is not None
    assert known.next_ordinal == 400


def test_a_damaged_line_is_refused_or_skipped(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    catalog.create("a", [0])
    catalog.sync()
    catalog.create("b", [0])
    catalog.close()
    path = tmp_path / "partitions"
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"x"'))
    with pytest.raises(LogDamagedError, match=r"partitions, line 2: .* on_damage"):
        opened(tmp_path)
    again = opened(tmp_path, skip=True)
    assert again.topics == {"b": {0: 1}}
    again.close()
    path.write_bytes(b"what is this\n")
    with pytest.raises(LogDamagedError, match="line 1: not the header"):
        opened(tmp_path)


def test_a_line_that_was_not_synced_may_be_lost_before_others(tmp_path: Path) -> None:
    """Seed 1015 of the simulator: a node refused to start after a power loss."""
    catalog = opened(tmp_path)
    catalog.create("a", [0])
    catalog.sync()
    catalog.create("lost", [0])
    catalog.create("b", [0])
    catalog.close()
    path = tmp_path / "partitions"
    path.write_bytes(path.read_bytes().replace(b'"lost"', bytes(6)))
    again = opened(tmp_path)
    assert again.topics == {"a": {0: 0}}
    again.close()


@pytest.mark.parametrize("change", ["create", "delete", "floor"])
def test_a_line_that_was_damaged_after_its_sync_is_refused_though_it_is_the_last(
    tmp_path: Path, change: str
) -> None:
    catalog = opened(tmp_path)
    catalog.create("a", [0])
    catalog.sync()
    path = tmp_path / "partitions"
    place = path.stat().st_size
    if change == "create":
        catalog.create("b", [0])
    elif change == "delete":
        catalog.delete("a")
    else:
        catalog.set_ends({0: 50})
    catalog.sync()
    catalog.close()
    data = bytearray(path.read_bytes())
    data[place + 20] ^= 1
    path.write_bytes(data)
    with pytest.raises(LogDamagedError, match=r"partitions, line 4: .* on_damage"):
        opened(tmp_path)
    opened(tmp_path, skip=True).close()


def test_what_was_torn_is_kept_beside_the_file(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    catalog.create("a", [0])
    catalog.close()
    path = tmp_path / "partitions"
    whole = path.read_bytes()
    line = whole.splitlines(keepends=True)[1]
    path.write_bytes(whole[:-5])
    with capture_logs() as told:
        opened(tmp_path).close()
    assert [one["event"] for one in told] == ["journal was torn"]
    assert (tmp_path / "partitions.dropped-0").read_bytes() == line[:-5]
    with capture_logs() as told:
        opened(tmp_path).close()
    assert told == []


def test_a_sync_is_not_told_where_the_disk_is_full_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: bytes, _place: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    catalog = opened(tmp_path)
    catalog.create("a", [0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        catalog.sync()
    catalog.create("b", [0])
    catalog.close()
    catalog = opened(tmp_path)
    assert catalog.topics == {"a": {0: 0}, "b": {0: 1}}
    catalog.close()


@pytest.mark.parametrize(
    ("whole", "damaged", "line"),
    [(b'"a"', b'"x"', 2), (b'"b"', b'"x"', 3), (b"}\n", b"}\x0b", 3)],
)
def test_a_damaged_line_that_was_there_at_the_start_is_refused(
    tmp_path: Path, whole: bytes, damaged: bytes, line: int
) -> None:
    catalog = opened(tmp_path)
    catalog.create("a", [0])
    catalog.create("b", [0])
    catalog.close()
    opened(tmp_path).close()
    path = tmp_path / "partitions"
    before, _, behind = path.read_bytes().rpartition(whole)
    path.write_bytes(before + damaged + behind)
    with pytest.raises(LogDamagedError, match=f"line {line}"):
        opened(tmp_path)
    opened(tmp_path, skip=True).close()


def test_a_damaged_line_in_a_file_of_an_older_program_is_refused_but_for_the_last(
    tmp_path: Path,
) -> None:
    lines = [
        b'{"type":"log","version":1,"log_id":77,"next_ordinal":0}',
        b'{"type":"create","topic":"a","numbers":[0],"ordinals":[0]}',
        b'{"type":"create","topic":"b","numbers":[0],"ordinals":[1]}',
    ]
    path = tmp_path / "partitions"
    path.write_bytes(b"".join(b"%08x %s\n" % (crc32(one), one) for one in lines))
    known = load(path, skip=False)
    assert known is not None
    assert known.topics == {"a": {0: 0}, "b": {0: 1}}
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"b"', b'"x"'))
    torn = load(path, skip=False)
    assert torn is not None
    assert torn.topics == {"a": {0: 0}}
    path.write_bytes(data.replace(b'"a"', b'"x"'))
    with pytest.raises(LogDamagedError, match="line 2"):
        opened(tmp_path)


def test_a_sync_that_another_thread_has_begun_is_not_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = opened(tmp_path)
    catalog.create("a", [0])
    synced: list[int] = []

    def slow(descriptor: int) -> None:
        monkeypatch.setattr(catalogs, "sync_data", synced.append)
        catalog.sync()  # as another thread does meanwhile
        synced.append(descriptor)

    monkeypatch.setattr(catalogs, "sync_data", slow)
    catalog.sync()
    assert len(synced) == 2
    catalog.close()


def test_a_line_that_the_disk_took_in_part_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = opened(tmp_path)
    catalog.create("a", [0])
    path = tmp_path / "partitions"
    before = path.read_bytes()
    write = os.pwrite

    def full(descriptor: int, data: bytes, place: int) -> int:
        if place > len(before):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:9], place)

    with monkeypatch.context() as patch:
        patch.setattr("ropeway.storage.file.catalog.os.pwrite", full)
        with pytest.raises(LogUnavailableError, match="nothing was changed"):
            catalog.create("b", [0])
    assert path.read_bytes() == before
    catalog.create("c", [0])
    assert catalog.topics == {"a": {0: 0}, "c": {0: 1}}
    catalog.close()


def test_what_the_disk_did_not_take_is_tried_again_and_what_it_has_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = opened(tmp_path)
    catalog.sync()
    synced: list[int] = []
    failing = [OSError("the disk")]

    def fdatasync(descriptor: int) -> None:
        synced.append(descriptor)
        if failing:
            raise failing.pop()

    monkeypatch.setattr("ropeway.storage.file.catalog.os.fdatasync", fdatasync)
    catalog.sync()
    assert synced == []
    catalog.create("a", [0])
    with pytest.raises(OSError, match="the disk"):
        catalog.sync()
    catalog.sync()
    assert len(synced) == 2
    catalog.sync()
    assert len(synced) == 2
    catalog.close()


def test_a_line_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.pwrite, 5

    def short(descriptor: int, data: bytes, place: int) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data, room = data[:room], 0
        return write(descriptor, data, place)

    catalog = opened(tmp_path)
    catalog.create("a", [0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", short)
        with pytest.raises(LogUnavailableError, match=r"No space .*nothing was"):
            catalog.create("b", [0])
    assert catalog.topics == {"a": {0: 0}}
    catalog.create("c", [0])
    catalog.close()
    catalog = opened(tmp_path)
    assert catalog.topics == {"a": {0: 0}, "c": {0: 1}}
    catalog.close()


def test_a_line_that_is_written_in_two_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    catalog = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:50], at))
        catalog.create("a", [0])
    catalog.create("b", [0])
    catalog.close()
    catalog = opened(tmp_path)
    assert catalog.topics == {"a": {0: 0}, "b": {0: 1}}
    catalog.close()
