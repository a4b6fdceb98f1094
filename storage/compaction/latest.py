"""Finding the newest record of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import Found
from ropeway.storage.compaction.offset_map import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.storage.api import Log
    from ropeway.storage.compaction.partition import CompactedPartition
    from ropeway.storage.compaction_api import Describer

_FIRST_COUNT = 16
_MOST = 1 << 16
_EVER_MS = (1 << 63) - 1


async def latest(
    inner: Log,
    describer: Describer,
    partitions: Sequence[CompactedPartition],
    topic: str,
    key: str,
) -> Found | None:
    """The newest record whose whole key this is; None where there is none.

    The inner log's index of words has all that retention has left, which is newer than
    what is in compacted files alone.
    """
    wanted = key.encode()
    word = (key.split() or [key])[0]
    count = _FIRST_COUNT
    while count <= _MOST:
        found = await inner.query(topic, word, 0, _EVER_MS, count)
        for one in found:
            if describer.key(one.data)[0] == wanted:
                return one
        if len(found) < count:
            break
        count *= 16  # other keys have the word, too
    return await _in_files(partitions, digest(wanted))


async def _in_files(
    partitions: Sequence[CompactedPartition], key_digest: bytes
) -> Found | None:
    newest: tuple[int, Found] | None = None
    for partition in partitions:
        found = await partition.clean.ask(lambda snapshot: snapshot.find(key_digest))
        if found is not None:
            offset, store_ms, data = found
            if newest is None or store_ms >= newest[0]:
                newest = store_ms, Found(offset, data)
    return None if newest is None else newest[1]
