"""One process a directory, and directories that cannot serve."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropeway.storage.api import LogError, LogInUseError
from ropeway.storage.file import FileLogSettings, open_log, verify


def test_a_directory_serves_one_process(tmp_path: Path) -> None:
    log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
    program = (
        "import sys, pathlib; from ropeway.storage.api import LogInUseError\n"
        "from ropeway.storage.file import open_log\n"
        "try: open_log(pathlib.Path(sys.argv[1]))\n"
        "except LogInUseError as error: print(error)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "is in use by process" in child.stdout
    with pytest.raises(LogInUseError):
        verify(tmp_path)
    asyncio.run(log.close())
    assert verify(tmp_path).problems == []


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(LogError, match="is not a directory"):
        open_log(file)
    with pytest.raises(LogError, match="is not a directory"):
        open_log(file / "below")


def test_a_directory_that_cannot_be_written_to_is_named() -> None:
    with pytest.raises(LogError, match=r"cannot write to /proc: .* may write to"):
        open_log(Path("/proc"))


def test_a_lock_names_its_holder_alone(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("123456789012\n")  # of one that had it before
    log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 16))
    with pytest.raises(LogInUseError, match=f"in use by process {os.getpid()};"):
        open_log(tmp_path)
    asyncio.run(log.close())
