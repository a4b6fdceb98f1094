"""Checking all compacted files of a log that is not open, without changing a byte."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.api import LogError
from ropeway.storage.compaction import manifest as manifests
from ropeway.storage.sealed import version_1
from ropeway.storage.sealed.layout import Whose
from ropeway.storage.sealed.verify import WrongPartError
from ropeway.storage.sealed.verify import verify as verify_segment

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.compaction.manifest import Manifest
    from ropeway.storage.sealed.verify import Part


class VerifiedFiles(Struct):
    """What a check of compacted files came upon."""

    files: int = 0
    records: int = 0
    problems: list[str] = []
    """One line for each file and place that is not what was written."""


def verify(directory: Path) -> VerifiedFiles:
    """Check every manifest, index and data file that counts. Not in an event loop.

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
        asyncio.run(_verify_partition(path.parent, manifest, report))
    return report


async def _verify_partition(
    path: Path, manifest: Manifest, report: VerifiedFiles
) -> None:
    whose = Whose(manifest.topic, manifest.number)
    end = 0
    for name in manifest.files:
        report.files += 1
        first = int(name.partition("-")[0])
        try:
            get = partial(_part, path / name, whose)
            about = (await verify_segment(get, whose, first)).about
        except WrongPartError as error:
            report.problems.append(f"{path / name}.{error.part}: {error}")
            continue
        report.records += about.records
        if not end <= first < about.end <= manifest.clean_end:
            report.problems.append(
                f"{path / name}: offsets {first} to {about.end - 1}; its manifest says "
                f"{end} to {manifest.clean_end - 1}"
            )
        end = about.end


async def _part(
    path: Path, whose: Whose, part: Part, start: int = 0, size: int | None = None
) -> bytes:
    with path.with_name(f"{path.name}.{part}").open("rb") as file:
        file.seek(start)
        data = file.read() if size is None else file.read(size)
    if part == "index":
        return version_1.of_compaction(data, whose) or data
    return data
