"""A full disk for each file of its own: an error that says so, nothing lost, then room.

The log's files have theirs beside what writes them (`tests/storage/file`), compacted
files too (`tests/storage/compaction/test_crashes.py`), objects of a tier
(`tests/storage/tiered/test_posix.py`), and derived stores in their contract.
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from ropeway.gateway.cli import context_file
from ropeway.gateway.cli.context_file import Context, Contexts
from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.http.day_history import FILE, DayHistory
from ropeway.routing.api import RouteStoreUnavailableError
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage import private
from ropeway.storage.api import LogError, LogUnavailableError
from ropeway.storage.file import open_log, segment
from ropeway.storage.file.offsets import open_offsets
from ropeway.storage.tiered.metadata import Metadata
from tests.formats.of_node import ORDERS
from tests.remoting import looped, running
from tests.storage.file import damage
from tests.storage.file.damage import SMALL, flip, places, reopen

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

ROOM = 1 << 30
LONG = "x" * 4000


def fill(database: sqlite3.Connection) -> None:
    """Have SQLite say that the disk is full: the file may not grow."""
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")


def make_room(database: sqlite3.Connection) -> None:
    database.execute(f"PRAGMA max_page_count = {ROOM}")


def test_offsets_are_kept_until_there_is_room(tmp_path: Path) -> None:
    async def main() -> None:
        offsets = open_offsets(tmp_path)
        fill(offsets._database)
        for number in range(9):
            offsets.commit(f"{LONG}{number}", "orders", 0, number)
        with pytest.raises(LogUnavailableError, match=r"cannot write .*is full"):
            await offsets.flush()
        assert offsets.get(f"{LONG}8", "orders", 0) == 8
        make_room(offsets._database)
        await offsets.flush()
        await offsets.close()
        again = open_offsets(tmp_path)
        assert again.get(f"{LONG}8", "orders", 0) == 8
        await again.close()

    asyncio.run(main())


def test_a_change_of_routes_is_refused_and_undone_until_there_is_room(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        await routes.change_topic("orders", lambda _: ORDERS)
        database = routes._database._connection
        fill(database)
        with pytest.raises(RouteStoreUnavailableError, match="full"):
            await routes.put_setting("n", "k", LONG * 9)
        assert routes.settings == {}
        make_room(database)
        await routes.put_setting("n", "k", LONG * 9)
        await routes.close()
        again = EmbeddedRoutes(tmp_path / "routes.db")
        assert again.topics == {"orders": ORDERS}
        assert again.settings == {("n", "k"): LONG * 9}
        await again.close()

    asyncio.run(main())


def test_the_metadata_of_a_tier_says_that_it_cannot_write(tmp_path: Path) -> None:
    metadata = Metadata(tmp_path)
    metadata.put_state("before", "1")
    fill(metadata._file)
    with pytest.raises(LogUnavailableError, match=r"cannot use .*tier\.db.*full"):
        metadata.put_state("long", LONG * 9)
    assert metadata.get_state("before") == "1"
    assert metadata.get_state("long") is None
    make_room(metadata._file)
    metadata.put_state("long", LONG * 9)
    metadata.close()


@looped
async def test_the_last_day_stays_as_it_was_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as (app, _):
        history = DayHistory(app.node)
        await history.start()
        await history.close()
        file = tmp_path / FILE
        before = file.read_bytes()

        def full(_path: str, _flags: int) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch, capture_logs() as told:
            patch.setattr(private, "opener", full)
            await history._write()
        assert [one["event"] for one in told] == ["history not written"]
        assert "No space left" in told[0]["reason"]
        assert file.read_bytes() == before
        await history.look()
        await history._write()
        assert file.read_bytes() != before


def test_contexts_stay_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    before = Contexts("a", {"a": Context(token="one")})
    context_file.save(before)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CannotError, match="cannot be written: No space left"):
            context_file.save(Contexts("b", {"b": Context(token="two")}))
    assert context_file.load() == before
    assert [path.name for path in context_file.path().parent.iterdir()] == [
        "contexts.json"
    ]


def no_room(path: Path, _pieces: object) -> None:
    """Stands for `write_file` on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_a_segment_whose_index_finds_no_room_is_read_and_sealed_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, capture_logs() as told:
        patch.setattr(segment, "write_file", no_room)
        blocks = damage.fill(tmp_path, SMALL, *[100] * 30)
    assert {one["event"] for one in told} == {"segment not sealed"}
    assert "No space left" in told[0]["error"]
    assert list(tmp_path.glob("*.index")) == []
    log, found = reopen(tmp_path, SMALL)
    assert found == [word for words in blocks for word in words]
    assert len(log.recovery.rebuilt) == len(told)


def test_a_torn_end_that_finds_no_room_is_left_until_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = damage.fill(tmp_path, SMALL, 3, 2)
    (path,) = tmp_path.glob("*.log")
    flip(path, places(path)[1] + 70)
    torn = path.read_bytes()

    async def refused() -> None:
        open_log(tmp_path, SMALL)

    with monkeypatch.context() as patch:
        patch.setattr(segment, "write_file", no_room)
        with pytest.raises(LogError, match=r"cannot open the log.*No space left"):
            asyncio.run(refused())
    assert path.read_bytes() == torn
    log, found = reopen(tmp_path, SMALL)
    assert found == blocks[0]
    assert [one.bytes for one in log.recovery.dropped]
