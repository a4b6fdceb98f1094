"""What a directory or an object store has of a compacted topic: its files, by manifest.

A gateway's own directory has it, and what the job `compacting` makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from ropeway.storage.compaction import manifest as manifests
from ropeway.storage.sealed import version_1
from ropeway.storage.sealed.index import Index, decode_index
from ropeway.storage.sealed.layout import Whose

if TYPE_CHECKING:
    from ropeway.storage.sealed.verify import Part
    from ropeway.storage.tiered.api import Provider


class CompactedName(NamedTuple):
    """A file of compacted records, as `SegmentName` is a segment of a tier."""

    topic: str
    number: int
    base: int
    end: int
    """Up to where there is nothing else; its last record may be far before that."""
    file: str
    """Without its end."""

    def opened(self, data: bytes) -> Index:
        """The index that an object of that name has.

        Raises:
            SegmentError: It is not what was written, or is of another segment.
        """
        whose = Whose(self.topic, self.number)
        index = decode_index(version_1.of_compaction(data, whose) or data)
        index.check_name(whose, self.base)
        return index

    def object(self, part: Part) -> str:
        """The name of one of its objects."""
        return f"{prefix(self.topic)}{self.number}/{self.file}.{part}"


def prefix(topic: str) -> str:
    """What the names of all of a topic's objects begin with."""
    return quote(topic, safe="%|") + "/"


async def listed(provider: Provider, topic: str) -> dict[int, list[CompactedName]]:
    """The files of a topic by partition, each by offset; none of what is empty.

    Raises:
        LogError: The provider cannot be asked, or a manifest is not what was written.
    """
    found = {}
    async for name, _ in provider.names(prefix(topic)):
        if not name.endswith(f"/{manifests.NAME}"):
            continue
        where = f"{provider.label}, object {name}"
        manifest = manifests.parse(await provider.get(name), where)
        bases = [int(file.partition("-")[0]) for file in manifest.files]
        ends = [*bases[1:], manifest.clean_end]
        if bases:
            found[manifest.number] = [
                CompactedName(topic, manifest.number, *one)
                for one in zip(bases, ends, manifest.files, strict=True)
            ]
    return found
