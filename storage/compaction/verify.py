"""Checking all compacted files of a log that is not open, without changing a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.api import LogError
from ropeway.storage.compaction import manifest as manifests
from ropeway.storage.compaction.file import open_file
from ropeway.storage.compaction.layout import GROUP_RECORDS

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.compaction.file import CompactedFile
    from ropeway.storage.compaction.manifest import Manifest

_GROUPS_AT_ONCE = 64


class VerifiedFiles(Struct):
    """What a check of compacted files came upon."""

    files: int = 0
    records: int = 0
    problems: list[str] = []
    """One line for each file and place that is not what was written."""


def verify(directory: Path) -> VerifiedFiles:
    """Check every manifest, index and data file that counts.

    Args:
        directory: Of compacted records; there may be none.
    """
    report = VerifiedFiles()
    for path in sorted(directory.glob(f"*/*/{manifests.NAME}")):
        try:
            manifest = manifests.load(path)
        except LogError as error:
            report.problems.append(str(error))
            continue
        assert manifest is not None, "it was listed"
        _verify_partition(path.parent, manifest, report)
    return report


def _verify_partition(path: Path, manifest: Manifest, report: VerifiedFiles) -> None:
    before = -1
    for name in manifest.files:
        report.files += 1
        try:
            file = open_file(path, name, manifest.clean_end)
            last = _verify_file(file, report)
        except LogError as error:
            report.problems.append(str(error))
            continue
        except OSError as error:
            report.problems.append(f"{error.filename or path}: {error.strerror}")
            continue
        if not before < file.first <= last < manifest.clean_end:
            report.problems.append(
                f"{file.data_path}: offsets {file.first} to {last}; its manifest says "
                f"{before + 1} to {manifest.clean_end - 1}"
            )
        before = last


def _verify_file(file: CompactedFile, report: VerifiedFiles) -> int:
    """Check a file; the offset of its last record."""
    groups = len(file.index.firsts)
    for group in range(0, groups, _GROUPS_AT_ONCE):
        end = min(group + _GROUPS_AT_ONCE, groups)
        file.entry_bytes(group, end)
        file.read_groups(group, end)
        report.records += min(
            (end - group) * GROUP_RECORDS, file.index.records - group * GROUP_RECORDS
        )
    return file.entries(groups - 1)[-1].offset
