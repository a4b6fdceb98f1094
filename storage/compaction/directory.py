"""The files of a partition's compacted records: opening them, swapping, clearing up.

compaction/<topic>/<number>/manifest
                           /<first offset>-<generation>.data
                           /<first offset>-<generation>.index
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import msgspec

from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.compaction import manifest as manifests
from ropeway.storage.compaction.file import open_file
from ropeway.storage.compaction.manifest import Manifest
from ropeway.storage.compaction.snapshot import Snapshot
from ropeway.storage.sealed import version_1
from ropeway.storage.sealed.layout import (
    DATA_SUFFIX,
    INDEX_SUFFIX,
    SegmentError,
    Whose,
)

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


def open_snapshot(disk: Disk, path: Path, identity: int = 0) -> Snapshot:
    """What the manifest of a partition names; an empty one where there is none.

    Indexes of version 1 are written anew first; their data stay as they are.

    Args:
        disk: Changes files.
        path: The partition's directory.
        identity: The partition's in its log; 0 where the log gives none.

    Raises:
        LogDamagedError: A file is not what was written, or is missing.
        LogError: A newer program made it, or it is of another log's partition.
        OSError: The disk refused.
    """
    manifest = manifests.load(path / manifests.NAME)
    if manifest is None:
        return Snapshot()
    if identity and manifest.identity not in (0, identity):
        raise LogError(
            f"{path / manifests.NAME} is of partition {manifest.identity:016x}, and "
            f"the log has {identity:016x} there: they are of different logs; restore "
            "both, or delete the directory to do without what was compacted"
        )
    whose = Whose(manifest.topic, manifest.number)
    try:
        if manifest.version < manifests.VERSION:
            _migrate(disk, path, whose, manifest)
        files = [
            open_file(path, name, whose, manifest.clean_end) for name in manifest.files
        ]
    except FileNotFoundError as error:
        raise LogDamagedError(
            f"{error.filename} is missing, and {path / manifests.NAME} names it; "
            "restore it from a copy"
        ) from error
    return Snapshot(files, manifest.clean_end, manifest.generation)


def _migrate(disk: Disk, path: Path, whose: Whose, manifest: Manifest) -> None:
    """Write indexes of version 1 as today's, then the manifest; again after a crash."""
    for name in manifest.files:
        index = path / (name + INDEX_SUFFIX)
        try:
            new = version_1.of_compaction(index.read_bytes(), whose)
        except SegmentError as error:
            raise LogDamagedError(
                f"{index}: {error}; restore the file from a copy"
            ) from error
        if new is not None:
            disk.put(index, [new])
    new_manifest = msgspec.structs.replace(manifest, version=manifests.VERSION)
    disk.put(path / manifests.NAME, [manifests.dump(new_manifest)])


def swap(disk: Disk, path: Path, whose: Whose, new: Snapshot) -> None:
    """Have the manifest name other files. In any thread.

    Raises:
        OSError: The disk refused, and the old files count.
    """
    manifest = Manifest(
        whose.topic,
        whose.number,
        new.clean_end,
        new.generation,
        tuple(one.name for one in new.files),
        identity=whose.identity,
    )
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
