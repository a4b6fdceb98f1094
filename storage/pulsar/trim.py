"""Trimming on Pulsar, which there is not: retention alone deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ropeway.storage.api import LogUnfitError

if TYPE_CHECKING:
    from collections.abc import Mapping


async def trim(
    topic: str, floors: Mapping[int, int], *, dry_run: bool = False
) -> NoReturn:
    """Refuse; see `storage.trim_api`.

    Pulsar deletes whole ledgers, and before their time only by truncating a topic. That
    empties the cursor that deduplication keeps its sequence ids in: once the topic is
    loaded again, what is appended is refused as not ours.

    Raises:
        LogUnfitError: Always.
    """
    del floors, dry_run
    raise LogUnfitError(
        f"topic {topic} is on Pulsar, which deletes by retention alone: set that of "
        "the namespace (pulsar-admin namespaces set-retention), or delete the topic. "
        "pulsar-admin topics truncate is no way out: deduplication loses its place"
    )
