"""Each call does the same with Linux's own and without; what is kept stays as it is."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from ropeway.common import system

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["as it is", "without Linux's own"], autouse=True)
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "as it is":
        for name in ("posix_fallocate", "posix_fadvise", "fdatasync"):
            monkeypatch.delattr(os, name)
        monkeypatch.delattr(time, "CLOCK_BOOTTIME")


@pytest.fixture
def descriptor(disk_path: Path) -> Iterator[int]:
    path = disk_path / "file"
    path.write_bytes(b"kept")
    descriptor = os.open(path, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("size", [4, 5, (1 << 20) + 7])
def test_room_is_set_aside_behind_what_is_there(descriptor: int, size: int):
    system.allocate(descriptor, size)
    found = os.pread(descriptor, 2 << 20, 0)
    assert found == b"kept".ljust(size, b"\0")
    assert os.fstat(descriptor).st_blocks * 512 >= size


def test_a_file_is_synced_and_read_ahead(descriptor: int):
    system.sync_data(descriptor)
    system.will_need(descriptor, 0, 4)
    assert os.pread(descriptor, 8, 0) == b"kept"


def test_what_cannot_be_synced_is_an_error():
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="Invalid argument"):
            system.sync_data(writing)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_clock_goes_on():
    before = system.boot_ns()
    assert 0 < before <= system.boot_ns()


@pytest.mark.parametrize(("there", "place"), [(True, 0), (False, 1)])
def test_a_buffer_is_filled_or_not(descriptor: int, there: bool, place: int):
    buffer = bytearray(4)
    assert system.read_resident(descriptor, buffer, place) is there
    if there:
        assert buffer == b"kept"


def test_nothing_is_resident_where_the_system_cannot_tell(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "RWF_NOWAIT")
    assert not system.read_resident(descriptor, bytearray(4), 0)


def test_the_boot_has_a_name_that_stays():
    assert system.boot_id() == system.boot_id() != ""


def test_a_closed_proc_has_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(system, "_BOOT_ID", "/nowhere")
    assert system.boot_id() == ""
