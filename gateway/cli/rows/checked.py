"""What a check of a closed log found."""

from __future__ import annotations

from ropeway.gateway.cli.rows import Row


class CompactedFiles(Row, frozen=True):
    """The files of compacted topics that were checked."""

    files: int
    records: int
    problems: list[str]


class LogVerified(Row, frozen=True):
    """A log in a directory, its compacted files, and stores that are made again."""

    segments: int
    blocks: int
    records: int
    problems: list[str]
    compacted: CompactedFiles
    stores: list[str]
