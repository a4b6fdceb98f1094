"""The files of a partition's compacted records: opening them, swapping, clearing up.

compaction/<topic>/<number>/manifest
                           /<first offset>-<generation>.data
                           /<first offset>-<generation>.index
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from ropeway.storage.api import LogDamagedError
from ropeway.storage.compaction import manifest as manifests
from ropeway.storage.compaction.file import DATA_SUFFIX, INDEX_SUFFIX, open_file
from ropeway.storage.compaction.manifest import Manifest
from ropeway.storage.compaction.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ropeway.storage.compaction.disk import Disk


def path_of(directory: Path, topic: str, number: int) -> Path:
    """The directory of a partition."""
    # What topics may be called is fit for a file's name but for a slash.
    return directory / quote(topic, safe="%|") / str(number)


def clean_end(path: Path) -> int:
    """Up to where a partition is compacted; 0 where that cannot be told.

    Raises:
        LogError: A newer program made it.
    """
    try:
        manifest = manifests.load(path / manifests.NAME)
    except LogDamagedError:
        return 0
    return manifest.clean_end if manifest is not None else 0


def open_snapshot(path: Path) -> Snapshot:
    """What the manifest of a partition names; an empty one where there is none.

    Raises:
        LogDamagedError: A file is not what was written, or is missing.
        LogError: A newer program made it.
        OSError: The disk refused.
    """
    manifest = manifests.load(path / manifests.NAME)
    if manifest is None:
        return Snapshot()
    try:
        files = [open_file(path, name, manifest.clean_end) for name in manifest.files]
    except FileNotFoundError as error:
        raise LogDamagedError(
            f"{error.filename} is missing, and {path / manifests.NAME} names it; "
            "restore it from a copy"
        ) from error
    return Snapshot(files, manifest.clean_end, manifest.generation)


def swap(disk: Disk, path: Path, topic: str, number: int, new: Snapshot) -> None:
    """Have the manifest name other files. In any thread.

    Raises:
        OSError: The disk refused, and the old files count.
    """
    names = tuple(one.name for one in new.files)
    manifest = Manifest(topic, number, new.clean_end, new.generation, names)
    disk.put(path / manifests.NAME, [manifests.dump(manifest)])


def clear_up(disk: Disk, path: Path, snapshot: Snapshot) -> None:
    """Delete every file that a snapshot does not name.

    Raises:
        OSError: The disk refused.
    """
    names = {one.name + end for one in snapshot.files for end in _SUFFIXES}
    names.add(manifests.NAME)
    if path.is_dir():
        for one in path.iterdir():
            if one.name not in names:
                disk.unlink(one)


_SUFFIXES = (DATA_SUFFIX, INDEX_SUFFIX)


def numbers(directory: Path, topic: str) -> list[int]:
    """The partitions of a topic that have a directory."""
    path = directory / quote(topic, safe="%|")
    if not path.is_dir():
        return []
    return sorted(int(one.name) for one in path.iterdir() if one.name.isdigit())


def remove(disk: Disk, directory: Path, topic: str) -> None:
    """Delete all that is there of a topic.

    Raises:
        OSError: The disk refused.
    """
    for number in numbers(directory, topic):
        disk.remove_directory(path_of(directory, topic, number))
    disk.remove_directory(directory / quote(topic, safe="%|"))


def remove_strangers(
    disk: Disk, directory: Path, topics: Mapping[str, frozenset[int]]
) -> None:
    """Delete what is there of topics that the log does not have: they were deleted.

    Raises:
        OSError: The disk refused.
    """
    if directory.is_dir():
        for one in directory.iterdir():
            topic = unquote(one.name) if "/" in unquote(one.name) else one.name
            if topic not in topics and one.is_dir():
                remove(disk, directory, topic)
