"""The disk of the model: what a power cut may leave, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.power.disk import SECTOR, Disk, Event, read, write

ROOT = Path("/disk")


def event(op: str, path: str = "", inode: int = 0, number: int = 0, **more) -> Event:
    """An event as the recorder writes it; `path` and `other` below the root."""
    other = more.get("other", "")
    return Event(
        op,
        "",
        str(ROOT / path),
        str(ROOT / other),
        more.get("data", b""),
        inode,
        number,
    )


def made(*events: Event) -> Disk:
    """A disk on which there is nothing but what events make."""
    disk = Disk.of(ROOT, {}, {})
    for one in events:
        disk.apply(one)
    return disk


def nothing(_kind: str, _number: int) -> bool:
    return False


CREATED = event("c", "a", 7)
WRITTEN = event("w", inode=7, data=b"x" * 2 * SECTOR)
SYNCED, NAMES_SYNCED = event("s", "a", 7), event("s", "")


def test_what_was_not_synced_may_be_lost() -> None:
    disk = made(CREATED, WRITTEN)
    assert disk.pending() == [1, 2]
    assert disk.image(nothing) == {}


def test_a_file_has_its_bytes_only_with_its_name() -> None:
    assert made(CREATED, WRITTEN, SYNCED).image(nothing) == {}
    assert made(CREATED, WRITTEN, NAMES_SYNCED).image(nothing) == {"a": b""}
    both = made(CREATED, WRITTEN, SYNCED, NAMES_SYNCED)
    assert both.image(nothing) == {"a": b"x" * 2 * SECTOR}
    assert both.pending() == []


def test_a_write_may_be_torn_and_a_size_be_there_without_bytes() -> None:
    disk = made(CREATED, NAMES_SYNCED, WRITTEN)
    sized = disk.image(lambda kind, _number: kind == "size")
    assert sized == {"a": bytes(2 * SECTOR)}
    fair_queue = iter([False, True, True])
    torn = disk.image(lambda _kind, _number: next(fair_queue))
    assert torn == {"a": bytes(SECTOR) + b"x" * SECTOR}


def test_what_is_written_while_a_sync_lasts_may_be_lost() -> None:
    began_then = event("s", "a", 7, number=2)
    over = event("w", inode=7, data=b"yy")
    disk = made(CREATED, WRITTEN, over, began_then, NAMES_SYNCED)
    assert disk.image(nothing) == {"a": b"x" * 2 * SECTOR}
    assert disk.pending() == [3]


def test_what_is_written_after_a_sync_may_be_lost_again() -> None:
    over = event("w", inode=7, data=b"yy")
    disk = made(CREATED, WRITTEN, SYNCED, NAMES_SYNCED, over, event("t", inode=7))
    assert disk.image(nothing) == {"a": b"x" * 2 * SECTOR}
    assert disk.image(lambda _kind, number: number == 5) == {
        "a": b"yy" + b"x" * (2 * SECTOR - 2)
    }
    assert disk.image(lambda _kind, number: number == 6) == {"a": b""}


def test_a_rename_is_there_whole_or_not_at_all() -> None:
    named = event("r", "a", other="b")
    disk = made(CREATED, NAMES_SYNCED, named)
    assert disk.image(nothing) == {"a": b""}
    assert disk.image(lambda _kind, _number: True) == {"b": b""}


def test_a_directory_that_is_lost_takes_all_with_it() -> None:
    below = event("c", "d/a", 7)
    disk = made(event("m", "d"), below, event("s", "d/a", 7), event("s", "d"))
    assert disk.image(nothing) == {}
    disk.apply(NAMES_SYNCED)
    assert disk.image(nothing) == {"d": None, "d/a": b""}


def test_a_deleted_file_may_come_back() -> None:
    disk = made(CREATED, NAMES_SYNCED, event("u", "a"))
    assert disk.image(nothing) == {"a": b""}
    disk.apply(NAMES_SYNCED)
    assert disk.image(nothing) == {}


def test_what_is_not_modelled_is_refused() -> None:
    with pytest.raises(AssertionError, match="not modelled"):
        made(event("l", "a", other="b"))


def test_an_image_is_written_as_it_is_read(tmp_path: Path) -> None:
    image = {"d": None, "d/a": b"x", "e": None}
    write(image, tmp_path / "made")
    assert read(tmp_path / "made") == image
